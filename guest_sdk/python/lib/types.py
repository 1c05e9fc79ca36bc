# Types of what the language makes, and objects that are only attributes.


class SimpleNamespace:
    def __init__(self, mapping=(), **attributes):
        for name, value in dict(mapping).items():
            setattr(self, name, value)
        for name, value in attributes.items():
            setattr(self, name, value)

    def __repr__(self):
        parts = ["{}={!r}".format(name, value) for name, value in self.__dict__.items()]
        return "namespace({})".format(", ".join(parts))

    def __eq__(self, other):
        return isinstance(other, SimpleNamespace) and self.__dict__ == other.__dict__


class MappingProxyType:
    """A mapping that can be read."""

    _is_mapping_ = True

    def __init__(self, mapping):
        self._mapping = mapping

    def __getitem__(self, key):
        return self._mapping[key]

    def __len__(self):
        return len(self._mapping)

    def __iter__(self):
        return iter(self._mapping)

    def __contains__(self, key):
        return key in self._mapping

    def get(self, key, default=None):
        return self._mapping.get(key, default)

    def keys(self):
        return self._mapping.keys()

    def values(self):
        return self._mapping.values()

    def items(self):
        return self._mapping.items()

    def copy(self):
        return self._mapping.copy()

    def __eq__(self, other):
        return dict(self.items()) == dict(other.items())

    def __repr__(self):
        return "mappingproxy({!r})".format(self._mapping)


def _function():
    pass


def _generator():
    yield


class _Class:
    def method(self):
        pass


FunctionType = LambdaType = type(_function)
MethodType = type(_Class().method)
BuiltinFunctionType = BuiltinMethodType = type(len)
# The engine's coroutines are its generators.
GeneratorType = CoroutineType = type(_generator())
NoneType = type(None)
EllipsisType = type(...)
NotImplementedType = type(NotImplemented)
UnionType = GenericAlias = tuple


def new_class(name, bases=(), kwds=None, exec_body=None):
    from _rt import finish

    space = {}
    if exec_body is not None:
        exec_body(space)
    return finish(tuple(space), (), **(kwds or {}))(type(name, tuple(bases) or (object,), space))
