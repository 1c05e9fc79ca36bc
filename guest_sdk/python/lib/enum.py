# Enumerations. The engine has no metaclasses, so an object stands in for a finished class.

from _rt import classmethod_, stand_in


class auto:
    """A value that is given when the class is finished; until then, operations with it are only noted."""

    value = None

    def _number(self):
        return self.value

    def __or__(self, other):
        return _Noted(lambda one, two: one | two, self, other)

    def __and__(self, other):
        return _Noted(lambda one, two: one & two, self, other)

    def __xor__(self, other):
        return _Noted(lambda one, two: one ^ two, self, other)

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__


class _Noted(auto):
    def __init__(self, operation, one, other):
        self._operation = operation
        self._one = one
        self._other = other

    def _number(self):
        return self._operation(_settled(self._one), _settled(self._other))


def _settled(value):
    return value._number() if isinstance(value, auto) else value


class EnumType:
    """What the name of an enumeration stands for: it can be iterated and called, which the engine's classes can't."""

    def __init__(self, real):
        self._real_ = real
        self.__members__ = real._member_map_

    def __getattr__(self, name):
        value = getattr(self._real_, name)
        return value.bound(self) if isinstance(value, classmethod_) else value

    def __iter__(self):
        return iter([self._real_._member_map_[name] for name in self._real_._member_names_])

    def __reversed__(self):
        return reversed(list(self))

    def __len__(self):
        return len(self._real_._member_names_)

    def __bool__(self):
        return True

    def __contains__(self, value):
        if isinstance(value, self._real_):
            return True
        return value in [member._value_ for member in self._real_._member_map_.values()]

    def __getitem__(self, name):
        return self._real_._member_map_[name]

    def __call__(self, value):
        return self._real_._lookup_(self, value)

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return "<enum '{}'>".format(self._real_.__name__)


EnumMeta = EnumType


class Enum:
    """Members are instances; their class is only finished once the class statement is over."""

    _mixin_ = None
    _is_flag_ = False

    def __init__(self, *args):
        pass

    @property
    def name(self):
        return self._name_

    @property
    def value(self):
        return self._value_

    def __str__(self):
        return "{}.{}".format(type(self).__name__, self._name_)

    def __repr__(self):
        return "<{}.{}: {!r}>".format(type(self).__name__, self._name_, self._value_)

    def __format__(self, spec):
        return format(str(self), spec)

    def __hash__(self):
        return hash(self._name_)

    def __eq__(self, other):
        return self is other

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @staticmethod
    def _missing_(value):
        return None

    @staticmethod
    def _generate_next_value_(name, start, count, last_values):
        return max(last_values) + 1 if last_values else start

    @staticmethod
    def _lookup_(cls, value):
        for member in cls._member_map_.values():
            if member is value or member._value_ == value:
                return member
        found = cls._missing_(value)
        if isinstance(found, Enum):
            return found
        raise ValueError("{!r} is not a valid {}".format(value, cls.__name__))

    @staticmethod
    def _finish_class_(cls, names, annotations, keywords):
        members = [name for name in names if _is_member(cls, name)]
        return _finished(cls, members) if members else None


def _is_member(cls, name):
    value = cls.__dict__[name]
    if name[:1] == "_" or isinstance(value, (property, classmethod, classmethod_, staticmethod)):
        return False
    if isinstance(value, nonmember):
        return False
    return not callable(value) and not hasattr(type(value), "__get__")


class nonmember:
    def __init__(self, value):
        self.value = value


def _finished(cls, names):
    space = dict(cls.__dict__)
    values = {}
    generate = space.get("_generate_next_value_")
    if isinstance(generate, staticmethod) or generate is None:
        generate = cls._generate_next_value_
    for name in names:
        value = space.pop(name)
        last = list(values.values())
        if isinstance(value, _Noted):
            value = value._number()
        elif isinstance(value, auto):
            value.value = generate(name, 1, len(last), last)
            value = value.value
        elif isinstance(value, tuple):
            made = []
            for part in value:
                made.append(generate(name, 1, len(last), last) if isinstance(part, auto) else part)
            value = tuple(made)
        values[name] = value
    for name, value in space.items():
        if isinstance(value, nonmember):
            setattr(cls, name, value.value)
    cls._member_map_ = {}
    cls._member_names_ = []
    made = cls._facade_ = EnumType(cls)
    stand_in(cls, made)
    for name in names:
        _add(cls, name, values[name])
    return made


def _add(cls, name, value):
    args = value if isinstance(value, tuple) else (value,)
    if "__new__" in cls.__dict__:
        member = cls.__new__(cls, *args)
    else:
        member = object.__new__(cls)
    if not hasattr(member, "_value_"):
        member._value_ = value
    for known in cls._member_map_.values():
        if known._value_ == member._value_ and type(known._value_) is type(member._value_):
            # An alias.
            cls._member_map_[name] = known
            setattr(cls, name, known)
            return
    member._name_ = name
    if cls.__init__ is not Enum.__init__:
        cls.__init__(member, *args)
    cls._member_map_[name] = member
    if not cls._is_flag_ or _is_one_bit(member._value_):
        cls._member_names_.append(name)
    setattr(cls, name, member)


def _is_one_bit(value):
    return value > 0 and value & (value - 1) == 0


class _Mixed(Enum):
    """A member that takes part in operations with its value."""

    def __hash__(self):
        return hash(self._value_)

    def __eq__(self, other):
        return self._value_ == _plain(other)

    def __lt__(self, other):
        return self._value_ < _plain(other)

    def __le__(self, other):
        return self._value_ <= _plain(other)

    def __gt__(self, other):
        return self._value_ > _plain(other)

    def __ge__(self, other):
        return self._value_ >= _plain(other)

    def __add__(self, other):
        return self._value_ + _plain(other)

    def __radd__(self, other):
        return _plain(other) + self._value_

    def __mul__(self, other):
        return self._value_ * _plain(other)

    def __rmul__(self, other):
        return _plain(other) * self._value_

    def __mod__(self, other):
        return self._value_ % _plain(other)

    def __str__(self):
        return str(self._value_)

    def __format__(self, spec):
        return format(self._value_, spec)


def _plain(value):
    return value._value_ if isinstance(value, Enum) else value


class IntEnum(_Mixed):
    _mixin_ = int

    def __int__(self):
        return self._value_

    def __index__(self):
        return self._value_

    def __float__(self):
        return float(self._value_)

    def __bool__(self):
        return bool(self._value_)

    def __abs__(self):
        return abs(self._value_)

    def __neg__(self):
        return -self._value_

    def __sub__(self, other):
        return self._value_ - _plain(other)

    def __rsub__(self, other):
        return _plain(other) - self._value_

    def __floordiv__(self, other):
        return self._value_ // _plain(other)

    def __truediv__(self, other):
        return self._value_ / _plain(other)

    def __pow__(self, other):
        return self._value_ ** _plain(other)

    def __and__(self, other):
        return self._value_ & _plain(other)

    def __or__(self, other):
        return self._value_ | _plain(other)

    def __xor__(self, other):
        return self._value_ ^ _plain(other)

    def __lshift__(self, other):
        return self._value_ << _plain(other)

    def __rshift__(self, other):
        return self._value_ >> _plain(other)


class StrEnum(_Mixed):
    _mixin_ = str

    def __len__(self):
        return len(self._value_)

    def __iter__(self):
        return iter(self._value_)

    def __contains__(self, part):
        return part in self._value_

    def __getitem__(self, key):
        return self._value_[key]

    def __getattr__(self, name):
        # What a string can do, it does.
        if name[:1] == "_":
            raise AttributeError("'{}' object has no attribute '{}'".format(type(self).__name__, name))
        return getattr(self._value_, name)

    @staticmethod
    def _generate_next_value_(name, start, count, last_values):
        return name.lower()


class MixedStr(StrEnum):
    """Of `class A(str, Enum)`: like its value, but shown and numbered as other members are."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__
    _generate_next_value_ = Enum._generate_next_value_


class MixedInt(IntEnum):
    __str__ = Enum.__str__
    __format__ = Enum.__format__


class Flag(Enum):
    _is_flag_ = True

    @staticmethod
    def _generate_next_value_(name, start, count, last_values):
        top = 0
        for value in last_values:
            top = max(top, value)
        power = 1
        while power <= top:
            power *= 2
        return power

    @staticmethod
    def _lookup_(cls, value):
        for member in cls._member_map_.values():
            if member is value or member._value_ == value:
                return member
        known = 0
        for member in cls._member_map_.values():
            known |= member._value_
        if not isinstance(value, int) or value & ~known and value >= 0:
            raise ValueError("{!r} is not a valid {}".format(value, cls.__name__))
        return _combined(cls, value & known)

    def _other(self, other):
        if isinstance(other, type(self)):
            return other._value_
        return other if self._mixin_ is int and isinstance(other, int) else None

    def __or__(self, other):
        value = self._other(other)
        return NotImplemented if value is None else self._facade_(self._value_ | value)

    def __and__(self, other):
        value = self._other(other)
        return NotImplemented if value is None else self._facade_(self._value_ & value)

    def __xor__(self, other):
        value = self._other(other)
        return NotImplemented if value is None else self._facade_(self._value_ ^ value)

    def __invert__(self):
        known = 0
        for member in self._member_map_.values():
            known |= member._value_
        return self._facade_(known & ~self._value_)

    def __contains__(self, other):
        return other._value_ & self._value_ == other._value_

    def __iter__(self):
        return iter([member for member in self._facade_ if member._value_ & self._value_])

    def __len__(self):
        return len(list(iter(self)))

    def __bool__(self):
        return bool(self._value_)

    def __eq__(self, other):
        return type(self) is type(other) and self._value_ == other._value_

    def __hash__(self):
        return hash(self._value_)

    def __str__(self):
        if not self._name_:
            return "{}({})".format(type(self).__name__, self._value_)
        return "{}.{}".format(type(self).__name__, self._name_)

    def __repr__(self):
        if not self._name_:
            return "<{}: {}>".format(type(self).__name__, self._value_)
        return "<{}.{}: {}>".format(type(self).__name__, self._name_, self._value_)


def _combined(cls, value):
    member = object.__new__(cls._real_)
    member._value_ = value
    names = [one._name_ for one in cls if one._value_ & value]
    member._name_ = "|".join(names) or None
    return member


class IntFlag(Flag):
    _mixin_ = int

    def __int__(self):
        return self._value_

    def __index__(self):
        return self._value_

    def __eq__(self, other):
        return self._value_ == _plain(other)

    def __hash__(self):
        return hash(self._value_)

    def __str__(self):
        return str(self._value_)

    def __format__(self, spec):
        return format(self._value_, spec)

    __ror__ = Flag.__or__
    __rand__ = Flag.__and__


def unique(enumeration):
    aliases = []
    for name, member in enumeration._member_map_.items():
        if name != member._name_:
            aliases.append("{} -> {}".format(name, member._name_))
    if aliases:
        raise ValueError("duplicate values found in {!r}: {}".format(enumeration, ", ".join(aliases)))
    return enumeration
