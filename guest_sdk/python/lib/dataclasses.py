# Data classes, from the annotations that the lowering keeps.

_MISSING = type("_MISSING_TYPE", (), {})
MISSING = _MISSING()
_KwOnly = type("_KW_ONLY_TYPE", (), {})
KW_ONLY = _KwOnly()

_FIELDS = "__dataclass_fields__"


class FrozenInstanceError(AttributeError):
    pass


class InitVar:
    @classmethod
    def __class_getitem__(cls, key):
        return cls


class Field:
    def __init__(self, default, default_factory, init, repr, hash, compare, metadata, kw_only):
        self.name = None
        self.type = None
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.hash = hash
        self.compare = compare
        self.metadata = metadata or {}
        self.kw_only = kw_only
        self._kind = ""

    def __repr__(self):
        return "Field(name={!r},type={!r})".format(self.name, self.type)


def field(
    *, default=MISSING, default_factory=MISSING, init=True, repr=True, hash=None, compare=True, metadata=None,
    kw_only=MISSING
):  # fmt: skip
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return Field(default, default_factory, init, repr, hash, compare, metadata, kw_only)


def dataclass(cls=None, **options):
    for name in options:
        if name not in _OPTIONS:
            raise TypeError("dataclass() got an unexpected keyword argument '{}'".format(name))
    settings = dict(_OPTIONS)
    settings.update(options)
    if cls is None:
        return lambda made: _process(made, settings)
    return _process(cls, settings)


_OPTIONS = {
    "init": True,
    "repr": True,
    "eq": True,
    "order": False,
    "unsafe_hash": False,
    "frozen": False,
    "match_args": True,
    "kw_only": False,
    "slots": False,
    "weakref_slot": False,
}


def _process(cls, settings):
    all_fields = {}
    for base in reversed(cls.__mro__):
        if base is not cls:
            all_fields.update(base.__dict__.get(_FIELDS, {}))
            frozen = base.__dict__.get("_frozen_dataclass_")
            if frozen is not None and frozen != settings["frozen"]:
                one, other = ("non-frozen", "frozen") if frozen is True else ("frozen", "non-frozen")
                raise TypeError("cannot inherit {} dataclass from a {} one".format(one, other))
    for made in _own_fields(cls, settings):
        all_fields[made.name] = made
    setattr(cls, _FIELDS, all_fields)
    cls._frozen_dataclass_ = settings["frozen"]
    own = cls.__dict__
    for_init = [one for one in all_fields.values() if one._kind != "class" and one.init]
    shown = [one for one in all_fields.values() if not one._kind]
    if settings["init"]:
        cls.__init__ = _make_init(cls, all_fields, for_init, settings["frozen"])
    if settings["repr"] and "__repr__" not in own:
        cls.__repr__ = _make_repr([one.name for one in shown if one.repr])
    compared = [one.name for one in shown if one.compare]
    _add_comparisons(cls, own, compared, settings)
    hashed = [one.name for one in shown if (one.compare if one.hash is None else one.hash)]
    if settings["unsafe_hash"] or (settings["eq"] and settings["frozen"]):
        if "__hash__" not in own:
            cls.__hash__ = lambda self: hash(tuple([getattr(self, name) for name in hashed]))
    elif settings["eq"] and "__hash__" not in own:
        cls.__hash__ = _unhashable
    if settings["frozen"]:
        cls.__setattr__ = _frozen_set
        cls.__delattr__ = _frozen_delete
    if settings["match_args"] and "__match_args__" not in own:
        cls.__match_args__ = tuple([one.name for one in for_init if not one.kw_only])
    return cls


def _unhashable(self):
    raise TypeError("unhashable type: '{}'".format(type(self).__name__))


def _frozen_set(self, name, value):
    raise FrozenInstanceError("cannot assign to field '{}'".format(name))


def _frozen_delete(self, name):
    raise FrozenInstanceError("cannot delete field '{}'".format(name))


def _own_fields(cls, settings):
    kw_only = settings["kw_only"]
    for name, text in cls.__dict__.get("__annotations__", {}).items():
        if _is_named(text, "KW_ONLY"):
            kw_only = True
            continue
        made = cls.__dict__.get(name, MISSING)
        if isinstance(made, Field):
            if made.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, made.default)
        else:
            made = field(default=made)
        made.name, made.type = name, text
        made._kind = "class" if _is_named(text, "ClassVar") else "init" if _is_named(text, "InitVar") else ""
        if made.kw_only is MISSING:
            made.kw_only = kw_only
        if isinstance(made.default, (list, dict, set)):
            kind = type(made.default)
            text = "mutable default {} for field {} is not allowed: use default_factory"
            raise ValueError(text.format(kind, name))
        yield made


def _is_named(text, name):
    head = text.partition("[")[0].strip()
    return head == name or head.endswith("." + name)


def _make_init(cls, all_fields, for_init, frozen):
    space = {"MISSING": MISSING}
    set_ = "_set(self, {!r}, {})" if frozen else "self.{} = {}"
    space["_set"] = object.__setattr__
    plain = [one for one in for_init if not one.kw_only]
    named = [one for one in for_init if one.kw_only]
    parameters = ["self"]
    optional = False
    for one in plain:
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        if optional and not has_default:
            raise TypeError("non-default argument '{}' follows default argument".format(one.name))
        optional = has_default
        parameters.append(_parameter(one, space))
    if named:
        parameters.append("*")
        parameters.extend([_parameter(one, space) for one in named])
    lines = []
    for one in all_fields.values():
        if one._kind:
            continue
        if one.default_factory is not MISSING:
            space["_make_" + one.name] = one.default_factory
            made = "_make_{}()".format(one.name)
            value = "{} if {} is MISSING else {}".format(made, one.name, one.name) if one.init else made
        elif one.init:
            value = one.name
        else:
            continue
        lines.append(set_.format(one.name, value))
    if hasattr(cls, "__post_init__"):
        given = ", ".join([one.name for one in all_fields.values() if one._kind == "init"])
        lines.append("self.__post_init__({})".format(given))
    body = "\n ".join(lines) or "pass"
    exec("def __init__({}):\n {}\n".format(", ".join(parameters), body), space)
    return space["__init__"]


def _parameter(one, space):
    if one.default_factory is not MISSING:
        return one.name + "=MISSING"
    if one.default is MISSING:
        return one.name
    space["_default_" + one.name] = one.default
    return "{}=_default_{}".format(one.name, one.name)


def _make_repr(names):
    def __repr__(self):
        key = id(self)
        if key in _shown:
            return "..."
        _shown.append(key)
        try:
            parts = ["{}={!r}".format(name, getattr(self, name)) for name in names]
        finally:
            _shown.pop()
        return "{}({})".format(type(self).__name__, ", ".join(parts))

    return __repr__


# Objects whose `repr` is being made: one may lead back to itself.
_shown = []


def _add_comparisons(cls, own, names, settings):
    def values(self):
        return tuple([getattr(self, name) for name in names])

    if settings["eq"] and "__eq__" not in own:
        cls.__eq__ = lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented
        cls.__ne__ = lambda self, other: values(self) != values(other) if type(other) is type(self) else NotImplemented
    if not settings["order"]:
        return
    if not settings["eq"]:
        raise ValueError("eq must be true if order is true")
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        if name in own:
            text = "Cannot overwrite attribute {} in class {}. Consider using functools.total_ordering"
            raise TypeError(text.format(name, cls.__name__))
    cls.__lt__ = lambda self, other: values(self) < values(other) if type(other) is type(self) else NotImplemented
    cls.__le__ = lambda self, other: values(self) <= values(other) if type(other) is type(self) else NotImplemented
    cls.__gt__ = lambda self, other: values(self) > values(other) if type(other) is type(self) else NotImplemented
    cls.__ge__ = lambda self, other: values(self) >= values(other) if type(other) is type(self) else NotImplemented


def _fields_of(value):
    return getattr(value, _FIELDS, None)


def fields(value):
    found = _fields_of(value)
    if found is None:
        raise TypeError("must be called with a dataclass type or instance")
    return tuple([one for one in found.values() if not one._kind])


def is_dataclass(value):
    return _fields_of(value) is not None


def asdict(value, *, dict_factory=dict):
    if isinstance(value, type) or not is_dataclass(value):
        raise TypeError("asdict() should be called on dataclass instances")
    return _converted(value, lambda one, inner: dict_factory([(f.name, inner(getattr(one, f.name))) for f in fields(one)]))


def astuple(value, *, tuple_factory=tuple):
    if isinstance(value, type) or not is_dataclass(value):
        raise TypeError("astuple() should be called on dataclass instances")
    return _converted(value, lambda one, inner: tuple_factory([inner(getattr(one, f.name)) for f in fields(one)]))


def _converted(value, convert):
    def inner(value):
        if is_dataclass(value) and not isinstance(value, type):
            return convert(value, inner)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[inner(one) for one in value])
        if isinstance(value, list):
            return [inner(one) for one in value]
        if isinstance(value, tuple):
            return tuple([inner(one) for one in value])
        if isinstance(value, dict):
            return {inner(key): inner(one) for key, one in value.items()}
        import copy

        return copy.deepcopy(value)

    return inner(value)


def replace(value, **changes):
    for name, one in value.__dataclass_fields__.items():
        if one._kind == "class":
            continue
        if not one.init:
            if name in changes:
                raise ValueError("field {} is declared with init=False, it cannot be specified with replace()".format(name))
            continue
        if name not in changes:
            if one._kind == "init" and one.default is MISSING:
                raise ValueError("InitVar '{}' must be specified with replace()".format(name))
            if not one._kind:
                changes[name] = getattr(value, name)
    return type(value)(**changes)


def make_dataclass(cls_name, fields, *, bases=(), namespace=None, **options):
    space = dict(namespace or {})
    annotations = {}
    for one in fields:
        if isinstance(one, str):
            one = (one, "Any")
        annotations[one[0]] = one[1] if isinstance(one[1], str) else getattr(one[1], "__name__", "Any")
        if len(one) == 3:
            space[one[0]] = one[2]
    space["__annotations__"] = annotations
    return dataclass(type(cls_name, tuple(bases) or (object,), space), **options)
