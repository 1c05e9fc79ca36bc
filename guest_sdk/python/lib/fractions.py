# Exact fractions.

from math import gcd


class Fraction:
    def __init__(self, numerator=0, denominator=None):
        if denominator is None:
            numerator, denominator = _ratio(numerator)
        elif isinstance(numerator, Fraction) or isinstance(denominator, Fraction):
            one, other = Fraction(numerator), Fraction(denominator)
            numerator = one.numerator * other.denominator
            denominator = one.denominator * other.numerator
        if not denominator:
            raise ZeroDivisionError("Fraction({}, 0)".format(numerator))
        if denominator < 0:
            numerator, denominator = -numerator, -denominator
        common = gcd(numerator, denominator)
        self.numerator = numerator // common
        self.denominator = denominator // common

    @classmethod
    def from_float(cls, value):
        return cls(value)

    from_decimal = from_float

    def limit_denominator(self, max_denominator=1000000):
        if max_denominator < 1:
            raise ValueError("max_denominator should be at least 1")
        if self.denominator <= max_denominator:
            return Fraction(self)
        p0, q0, p1, q1 = 0, 1, 1, 0
        n, d = self.numerator, self.denominator
        while True:
            whole = n // d
            q2 = q0 + whole * q1
            if q2 > max_denominator:
                break
            p0, q0, p1, q1 = p1, q1, p0 + whole * p1, q2
            n, d = d, n - whole * d
        k = (max_denominator - q0) // q1
        one, other = Fraction(p0 + k * p1, q0 + k * q1), Fraction(p1, q1)
        return other if abs(other - self) <= abs(one - self) else one

    def as_integer_ratio(self):
        return self.numerator, self.denominator

    def is_integer(self):
        return self.denominator == 1

    def _with(self, other, exact, inexact):
        if isinstance(other, (int, bool)):
            other = Fraction(int(other))
        if isinstance(other, Fraction):
            return exact(self, other)
        if isinstance(other, float):
            return inexact(float(self), other)
        return NotImplemented

    def __add__(self, other):
        return self._with(other, _add, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, lambda a, b: _add(a, -b), lambda a, b: a - b)

    def __rsub__(self, other):
        return -(self - other)

    def __mul__(self, other):
        return self._with(other, _multiply, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._with(other, _divide, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self._with(other, lambda a, b: _divide(b, a), lambda a, b: b / a)

    def __floordiv__(self, other):
        return self._with(other, lambda a, b: _floor(_divide(a, b)), lambda a, b: a // b)

    def __mod__(self, other):
        return self._with(other, lambda a, b: a - b * _floor(_divide(a, b)), lambda a, b: a % b)

    def __divmod__(self, other):
        return self // other, self % other

    def __pow__(self, power):
        if isinstance(power, Fraction) and power.denominator == 1:
            power = power.numerator
        if not isinstance(power, int):
            return float(self) ** float(power)
        if power >= 0:
            return Fraction(self.numerator**power, self.denominator**power)
        return Fraction(self.denominator**-power, self.numerator**-power)

    def __neg__(self):
        return Fraction(-self.numerator, self.denominator)

    def __pos__(self):
        return self

    def __abs__(self):
        return Fraction(abs(self.numerator), self.denominator)

    def __int__(self):
        whole = abs(self.numerator) // self.denominator
        return whole if self.numerator >= 0 else -whole

    __trunc__ = __int__

    def __float__(self):
        return _quotient(self.numerator, self.denominator)

    def __floor__(self):
        return self.numerator // self.denominator

    def __ceil__(self):
        return -(-self.numerator // self.denominator)

    def __round__(self, ndigits=None):
        if ndigits is not None:
            shift = 10 ** abs(ndigits)
            return Fraction(round_(self * shift), shift) if ndigits > 0 else Fraction(round_(self / shift) * shift)
        return round_(self)

    def _compared(self, other, compare):
        return self._with(
            other,
            lambda a, b: compare(a.numerator * b.denominator, b.numerator * a.denominator),
            compare,
        )

    def __eq__(self, other):
        found = self._compared(other, lambda a, b: a == b)
        return False if found is NotImplemented else found

    def __lt__(self, other):
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compared(other, lambda a, b: a >= b)

    def __hash__(self):
        return hash(self.numerator) if self.denominator == 1 else hash((self.numerator, self.denominator))

    def __bool__(self):
        return self.numerator != 0

    def __str__(self):
        if self.denominator == 1:
            return str(self.numerator)
        return "{}/{}".format(self.numerator, self.denominator)

    def __repr__(self):
        return "Fraction({}, {})".format(self.numerator, self.denominator)

    def __format__(self, spec):
        return format(float(self) if spec[-1:] in ("e", "f", "g", "%") else str(self), spec)


def _ratio(value):
    if isinstance(value, Fraction):
        return value.numerator, value.denominator
    if isinstance(value, (int, bool)):
        return int(value), 1
    if isinstance(value, str):
        return _parsed(value)
    if hasattr(value, "as_integer_ratio"):
        return value.as_integer_ratio()
    raise TypeError("argument should be a string or a Rational instance")


def _parsed(text):
    stripped = text.strip().replace("_", "")
    top, slash, bottom = stripped.partition("/")
    try:
        if slash:
            return int(top), int(bottom)
        number, _, power = stripped.lower().partition("e")
        whole, _, digits = number.partition(".")
        numerator = int(whole + digits)
        power = int(power or "0") - len(digits)
    except ValueError:
        raise ValueError("Invalid literal for Fraction: {!r}".format(text))
    return (numerator * 10**power, 1) if power >= 0 else (numerator, 10**-power)


def _add(a, b):
    return Fraction(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator)


def _multiply(a, b):
    return Fraction(a.numerator * b.numerator, a.denominator * b.denominator)


def _divide(a, b):
    return Fraction(a.numerator * b.denominator, a.denominator * b.numerator)


def _floor(value):
    return value.numerator // value.denominator


def _bits(value):
    return len(bin(value)) - 2


def _quotient(top, bottom):
    """The float nearest to a quotient, to which large numbers must not be rounded first."""
    sign = -1.0 if top < 0 else 1.0
    top = abs(top)
    shift = max(_bits(top) - _bits(bottom) - 55, -1074 - 2) if top else 0
    if shift > 0:
        bottom <<= shift
    else:
        top <<= -shift
    whole, rest = divmod(top, bottom)
    # A last bit stands for all that is left, so that halves are rounded right.
    return sign * float(whole << 1 | bool(rest)) * 2.0 ** (shift - 1)


def round_(value):
    whole, rest = divmod(value.numerator, value.denominator)
    twice = rest * 2
    if twice > value.denominator or (twice == value.denominator and whole % 2):
        whole += 1
    return whole
