# Operators as functions.


def lt(a, b):
    return a < b


def le(a, b):
    return a <= b


def eq(a, b):
    return a == b


def ne(a, b):
    return a != b


def ge(a, b):
    return a >= b


def gt(a, b):
    return a > b


def not_(a):
    return not a


def truth(a):
    return bool(a)


def is_(a, b):
    return a is b


def is_not(a, b):
    return a is not b


def add(a, b):
    return a + b


def sub(a, b):
    return a - b


def mul(a, b):
    return a * b


def truediv(a, b):
    return a / b


def floordiv(a, b):
    return a // b


def mod(a, b):
    return a % b


def pow(a, b):
    return a**b


def matmul(a, b):
    return a @ b


def and_(a, b):
    return a & b


def or_(a, b):
    return a | b


def xor(a, b):
    return a ^ b


def lshift(a, b):
    return a << b


def rshift(a, b):
    return a >> b


def neg(a):
    return -a


def pos(a):
    return +a


def invert(a):
    return ~a


inv = invert
iadd, isub, imul = add, sub, mul


def index(a):
    return a if isinstance(a, int) else a.__index__()


def concat(a, b):
    return a + b


def contains(a, b):
    return b in a


def getitem(a, b):
    return a[b]


def setitem(a, b, c):
    a[b] = c


def delitem(a, b):
    del a[b]


def countOf(a, b):
    return len([value for value in a if value == b])


def indexOf(a, b):
    for index, value in enumerate(a):
        if value == b:
            return index
    raise ValueError("sequence.index(x): x not in sequence")


def call(function, *args, **keywords):
    return function(*args, **keywords)


def _dotted(value, name):
    for part in name.split("."):
        value = getattr(value, part)
    return value


def attrgetter(name, *names):
    if not names:
        return lambda value: _dotted(value, name)
    return lambda value: tuple([_dotted(value, one) for one in (name,) + names])


def itemgetter(key, *keys):
    if not keys:
        return lambda value: value[key]
    return lambda value: tuple([value[one] for one in (key,) + keys])


def methodcaller(name, *args, **keywords):
    return lambda value: getattr(value, name)(*args, **keywords)
