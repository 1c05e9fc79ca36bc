# Decimal numbers: finite ones, infinities and a quiet NaN, with the context's precision and rounding. Signals raise
# for division by zero, invalid operations and overflow, as CPython's default context does.

ROUND_UP, ROUND_DOWN, ROUND_CEILING, ROUND_FLOOR = "ROUND_UP", "ROUND_DOWN", "ROUND_CEILING", "ROUND_FLOOR"
ROUND_HALF_UP, ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_05UP = (
    "ROUND_HALF_UP", "ROUND_HALF_DOWN", "ROUND_HALF_EVEN", "ROUND_05UP",
)  # fmt: skip
MAX_PREC = 1000000
MAX_EMAX, MIN_EMIN = 999999, -999999


class DecimalException(ArithmeticError):
    pass


class InvalidOperation(DecimalException):
    pass


class DivisionByZero(ZeroDivisionError):
    pass


class Overflow(DecimalException):
    pass


class FloatOperation(DecimalException):
    pass


class Context:
    def __init__(self, prec=28, rounding=ROUND_HALF_EVEN, **options):
        self.prec = prec
        self.rounding = rounding

    def copy(self):
        return Context(self.prec, self.rounding)

    def create_decimal(self, value="0"):
        return Decimal(value)._fixed(self)

    def quantize(self, a, b):
        return a.quantize(b, context=self)

    def __repr__(self):
        return "Context(prec={}, rounding={})".format(self.prec, self.rounding)


DefaultContext = Context()
BasicContext = Context(9, ROUND_HALF_UP)
ExtendedContext = Context(9)
_current = [Context()]


def getcontext():
    return _current[0]


def setcontext(context):
    _current[0] = context


class localcontext:
    def __init__(self, ctx=None, **options):
        self._made = (ctx or getcontext()).copy()
        for name, value in options.items():
            setattr(self._made, name, value)

    def __enter__(self):
        self._before = _current[0]
        _current[0] = self._made
        return self._made

    def __exit__(self, kind, error, traceback):
        _current[0] = self._before


def _rounds_up(sign, number, rest, unit, rounding):
    """Whether what is cut off (`rest` of `unit`) makes a number one larger."""
    if not rest:
        return False
    if rounding == ROUND_DOWN:
        return False
    if rounding == ROUND_UP:
        return True
    if rounding == ROUND_CEILING:
        return not sign
    if rounding == ROUND_FLOOR:
        return bool(sign)
    if rounding == ROUND_05UP:
        return number % 5 == 0
    twice = rest * 2
    if twice != unit:
        return twice > unit
    return rounding == ROUND_HALF_UP or (rounding == ROUND_HALF_EVEN and number % 2 == 1)


class Decimal:
    """`(-1) ** _sign * _int * 10 ** _exp`; or `_special`, which is "inf", "nan" or empty."""

    def __init__(self, value="0", context=None):
        self._special = ""
        self._exp = 0
        if isinstance(value, Decimal):
            self._set(value._sign, value._int, value._exp, value._special)
        elif isinstance(value, (int, bool)):
            self._set(int(value < 0), abs(int(value)), 0)
        elif isinstance(value, float):
            self._set_float(value)
        elif isinstance(value, str):
            self._parse(value)
        elif isinstance(value, (tuple, list)):
            sign, digits, exp = value
            self._set(sign, int("".join([str(digit) for digit in digits]) or "0"), exp)
        else:
            raise TypeError("conversion from {} to Decimal is not supported".format(type(value).__name__))

    def _set(self, sign, number, exp, special=""):
        self._sign, self._int, self._exp, self._special = sign, number, exp, special

    def _set_float(self, value):
        sign = int(str(value)[0] == "-")
        if value != value:
            self._set(0, 0, 0, "nan")
        elif value in (float("inf"), float("-inf")):
            self._set(sign, 0, 0, "inf")
        else:
            from _numbers import as_integer_ratio

            top, bottom = as_integer_ratio(abs(value))
            power = len(bin(bottom)) - 3
            self._set(sign, top * 5**power, -power)

    def _parse(self, text):
        word = text.strip().replace("_", "").lower()
        sign = 0
        if word[:1] in ("+", "-"):
            sign = int(word[0] == "-")
            word = word[1:]
        if word in ("inf", "infinity", "nan"):
            self._set(sign, 0, 0, word[:3])
            return
        number, e, power = word.partition("e")
        whole, _, digits = number.partition(".")
        try:
            if not (whole + digits).isdigit():
                raise ValueError
            self._set(sign, int(whole + digits), int(power if e else "0") - len(digits))
        except ValueError:
            raise InvalidOperation("[<class 'decimal.ConversionSyntax'>]")
        if abs(self._exp) > 10 * MAX_EMAX:
            raise Overflow("the exponent is too large")

    @classmethod
    def from_float(cls, value):
        return cls(value)

    # Rounding.

    def _fixed(self, context=None):
        """Cut to the context's precision."""
        context = context or _current[0]
        if self._special:
            return self
        over = len(str(self._int)) - context.prec
        made = self if over <= 0 else self._rescaled(self._exp + over, context.rounding)
        if len(str(made._int)) > context.prec:
            made = made._rescaled(made._exp + 1, context.rounding)
        if made._int and made._exp + len(str(made._int)) - 1 > MAX_EMAX:
            raise Overflow("[<class 'decimal.Overflow'>, <class 'decimal.Rounded'>]")
        return made

    def _rescaled(self, exp, rounding):
        shift = exp - self._exp
        if shift <= 0:
            return _decimal(self._sign, self._int * 10**-shift, exp)
        if shift > len(str(self._int)) + 1:
            up = _rounds_up(self._sign, 0, self._int and 1, 10, rounding)
            return _decimal(self._sign, int(up), exp)
        unit = 10**shift
        number, rest = divmod(self._int, unit)
        return _decimal(self._sign, number + _rounds_up(self._sign, number, rest, unit, rounding), exp)

    def quantize(self, exp, rounding=None, context=None):
        exp = _converted(exp)
        context = context or _current[0]
        if self._special or exp._special:
            if self._special == exp._special == "inf":
                return self
            return self._nan(exp)
        made = self._rescaled(exp._exp, rounding or context.rounding)
        if len(str(made._int)) > context.prec:
            raise InvalidOperation("[<class 'decimal.InvalidOperation'>]")
        return made

    def to_integral_value(self, rounding=None, context=None):
        if self._special or self._exp >= 0:
            return self
        return self._rescaled(0, rounding or (context or _current[0]).rounding)

    to_integral = to_integral_exact = to_integral_value

    def __round__(self, ndigits=None):
        if ndigits is None:
            return int(self._finite()._rescaled(0, ROUND_HALF_EVEN))
        return self.quantize(_decimal(0, 1, -ndigits), ROUND_HALF_EVEN)

    def __floor__(self):
        return int(self._finite()._rescaled(0, ROUND_FLOOR))

    def __ceil__(self):
        return int(self._finite()._rescaled(0, ROUND_CEILING))

    def _finite(self):
        if self._special == "nan":
            raise ValueError("cannot convert NaN to integer")
        if self._special:
            raise OverflowError("cannot convert Infinity to integer")
        return self

    # Arithmetic.

    def _nan(self, other=None):
        if self._special == "nan":
            return self
        if other is not None and other._special == "nan":
            return other
        raise InvalidOperation("[<class 'decimal.InvalidOperation'>]")

    def __add__(self, other):
        other = _converted(other)
        if other is None:
            return NotImplemented
        if self._special or other._special:
            if "nan" in (self._special, other._special) or (
                self._special and other._special and self._sign != other._sign
            ):
                return self._nan(other)
            return self if self._special else other
        exp = min(self._exp, other._exp)
        one = self._int * 10 ** (self._exp - exp) * (-1 if self._sign else 1)
        two = other._int * 10 ** (other._exp - exp) * (-1 if other._sign else 1)
        total = one + two
        sign = int(total < 0)
        if not total:
            # Nothing is negative if both were, or if the rounding is downwards.
            down = _current[0].rounding == ROUND_FLOOR
            sign = int((self._sign and other._sign) or (self._sign != other._sign and down))
        return _decimal(sign, abs(total), exp)._fixed()

    __radd__ = __add__

    def __sub__(self, other):
        other = _converted(other)
        return NotImplemented if other is None else self + other._negated()

    def __rsub__(self, other):
        return _converted(other) - self

    def _negated(self):
        return _decimal(1 - self._sign, self._int, self._exp, self._special)

    def __mul__(self, other):
        other = _converted(other)
        if other is None:
            return NotImplemented
        sign = self._sign ^ other._sign
        if self._special or other._special:
            if "nan" in (self._special, other._special) or not self or not other:
                return self._nan(other)
            return _decimal(sign, 0, 0, "inf")
        return _decimal(sign, self._int * other._int, self._exp + other._exp)._fixed()

    __rmul__ = __mul__

    def __truediv__(self, other):
        other = _converted(other)
        if other is None:
            return NotImplemented
        sign = self._sign ^ other._sign
        if self._special or other._special:
            if "nan" in (self._special, other._special) or self._special == other._special:
                return self._nan(other)
            return _decimal(sign, 0, 0, self._special)
        if not other._int:
            if not self._int:
                raise InvalidOperation("[<class 'decimal.DivisionUndefined'>]")
            raise DivisionByZero("[<class 'decimal.DivisionByZero'>]")
        exp = self._exp - other._exp
        if not self._int:
            return _decimal(sign, 0, exp)
        shift = max(0, len(str(other._int)) - len(str(self._int)) + _current[0].prec + 1)
        number, rest = divmod(self._int * 10**shift, other._int)
        exp -= shift
        if rest:
            # A last digit stands for all that is left.
            if number % 5 == 0:
                number += 1
        else:
            ideal = self._exp - other._exp
            while exp < ideal and number % 10 == 0:
                number //= 10
                exp += 1
        return _decimal(sign, number, exp)._fixed()

    def __rtruediv__(self, other):
        return _converted(other) / self

    def _divided(self, other):
        """Whole quotient (towards zero) and the rest."""
        if self._special or other._special == "nan":
            self._nan(other)
        if other._special:
            return _decimal(self._sign ^ other._sign, 0, 0), self
        if not other._int:
            raise DivisionByZero("[<class 'decimal.DivisionByZero'>]")
        exp = min(self._exp, other._exp)
        whole, rest = divmod(self._int * 10 ** (self._exp - exp), other._int * 10 ** (other._exp - exp))
        if len(str(whole)) > _current[0].prec:
            raise InvalidOperation("[<class 'decimal.DivisionImpossible'>]")
        return _decimal(self._sign ^ other._sign, whole, 0), _decimal(self._sign, rest, exp)._fixed()

    def __floordiv__(self, other):
        other = _converted(other)
        return NotImplemented if other is None else self._divided(other)[0]

    def __mod__(self, other):
        other = _converted(other)
        return NotImplemented if other is None else self._divided(other)[1]

    def __divmod__(self, other):
        return self._divided(_converted(other))

    def __rfloordiv__(self, other):
        return _converted(other) // self

    def __rmod__(self, other):
        return _converted(other) % self

    def __pow__(self, other):
        other = _converted(other)
        if other is None:
            return NotImplemented
        if self._special or other._special:
            return self._nan(other)
        if other != other.to_integral_value(ROUND_DOWN):
            if other == Decimal("0.5"):
                return self.sqrt()
            raise InvalidOperation("an agent's Decimal has powers of whole numbers only")
        power = int(other)
        if not self and power <= 0:
            if not power:
                raise InvalidOperation("[<class 'decimal.InvalidOperation'>]")
            return _decimal(self._sign & power, 0, 0, "inf")
        prec = _current[0].prec
        with localcontext(prec=prec + 10 + len(str(abs(power)))):
            result, factor, left = Decimal(1), self, abs(power)
            while left:
                if left & 1:
                    result = result * factor
                left >>= 1
                if left:
                    factor = factor * factor
            if power < 0:
                result = Decimal(1) / result
        return result._fixed()

    def __rpow__(self, other):
        return _converted(other) ** self

    def sqrt(self, context=None):
        from math import isqrt

        if self._special == "nan" or (self._special and not self._sign):
            return self
        if self._sign and self._int or self._special:
            return self._nan()
        ideal = self._exp >> 1
        if not self._int:
            return _decimal(self._sign, 0, ideal)
        prec = (context or _current[0]).prec + 1
        number, exp = self._int, self._exp
        if exp & 1:
            number, exp = number * 10, exp - 1
        shift = max(0, prec - (len(str(number)) + 1) // 2)
        number *= 100**shift
        root = isqrt(number)
        exp = (exp >> 1) - shift
        if root * root == number:
            while exp < ideal and root % 10 == 0:
                root, exp = root // 10, exp + 1
        elif root % 5 == 0:
            root += 1
        return _decimal(0, root, exp)._fixed(context)

    def exp(self, context=None):
        raise InvalidOperation("an agent's Decimal has no exp, ln and log10: use math")

    ln = log10 = exp

    def fma(self, other, third, context=None):
        with localcontext(prec=MAX_PREC):
            product = self * _converted(other) + _converted(third)
        return product._fixed(context)

    def __neg__(self):
        return (self._negated() if self else self.copy_abs())._fixed()

    def __pos__(self):
        return (self if self or self._special else self.copy_abs())._fixed()

    def __abs__(self):
        return self.copy_abs()._fixed()

    def copy_abs(self):
        return _decimal(0, self._int, self._exp, self._special)

    def copy_negate(self):
        return self._negated()

    def copy_sign(self, other):
        return _decimal(_converted(other)._sign, self._int, self._exp, self._special)

    # Comparison.

    def _compare(self, other):
        """-1, 0 or 1; `None` if one of the two is no number."""
        if "nan" in (self._special, other._special):
            return None
        if self._special or other._special:
            one, two = _infinity(self), _infinity(other)
            return (one > two) - (one < two)
        exp = min(self._exp, other._exp)
        if abs(self._exp - other._exp) > 5000:
            one, two = self.adjusted(), other.adjusted()
            if self._sign != other._sign or not self or not other:
                one, two = _infinity_sign(self), _infinity_sign(other)
            elif self._sign:
                one, two = two, one
            return (one > two) - (one < two)
        one = self._int * 10 ** (self._exp - exp) * (-1 if self._sign else 1)
        two = other._int * 10 ** (other._exp - exp) * (-1 if other._sign else 1)
        return (one > two) - (one < two)

    def compare(self, other, context=None):
        found = self._compare(_converted(other))
        return Decimal("NaN") if found is None else Decimal(found)

    def __eq__(self, other):
        other = _converted(other, True)
        return False if other is None else self._compare(other) == 0

    def _ordered(self, other, test):
        other = _converted(other, True)
        if other is None:
            return NotImplemented
        found = self._compare(other)
        if found is None:
            raise InvalidOperation("[<class 'decimal.InvalidOperation'>]")
        return test(found)

    def __lt__(self, other):
        return self._ordered(other, lambda found: found < 0)

    def __le__(self, other):
        return self._ordered(other, lambda found: found <= 0)

    def __gt__(self, other):
        return self._ordered(other, lambda found: found > 0)

    def __ge__(self, other):
        return self._ordered(other, lambda found: found >= 0)

    def max(self, other, context=None):
        other = _converted(other)
        return self if self >= other else other

    def min(self, other, context=None):
        other = _converted(other)
        return self if self <= other else other

    def __hash__(self):
        if self._special:
            return hash(self._special)
        made = self.normalize() if self._int else _ZERO
        return hash(int(made)) if made._exp >= 0 and made._exp < 400 else hash((made._sign, made._int, made._exp))

    def __bool__(self):
        return bool(self._special or self._int)

    # Parts and forms.

    def is_nan(self):
        return self._special == "nan"

    is_qnan = is_nan

    def is_infinite(self):
        return self._special == "inf"

    def is_finite(self):
        return not self._special

    def is_signed(self):
        return bool(self._sign)

    def is_zero(self):
        return not self._special and not self._int

    def adjusted(self):
        return 0 if self._special else self._exp + len(str(self._int)) - 1

    def as_tuple(self):
        from collections import namedtuple

        digits = tuple([int(digit) for digit in str(self._int)])
        exp = {"inf": "F", "nan": "n"}.get(self._special, self._exp)
        return namedtuple("DecimalTuple", ("sign", "digits", "exponent"))(self._sign, digits, exp)

    def as_integer_ratio(self):
        from fractions import Fraction

        self._finite()
        number = -self._int if self._sign else self._int
        made = Fraction(number * 10**self._exp) if self._exp >= 0 else Fraction(number, 10**-self._exp)
        return made.numerator, made.denominator

    def normalize(self, context=None):
        made = self._fixed(context)
        if made._special:
            return made
        if not made._int:
            return _decimal(made._sign, 0, 0)
        number, exp = made._int, made._exp
        while number % 10 == 0:
            number, exp = number // 10, exp + 1
        return _decimal(made._sign, number, exp)

    def scaleb(self, other, context=None):
        return _decimal(self._sign, self._int, self._exp + int(other), self._special)._fixed(context)

    def same_quantum(self, other):
        return self._special == other._special and (bool(self._special) or self._exp == other._exp)

    def __int__(self):
        self._finite()
        number = self._int * 10**self._exp if self._exp >= 0 else self._int // 10 ** min(-self._exp, 10000)
        return -number if self._sign else number

    __trunc__ = __int__

    def __float__(self):
        return float(str(self).lower())

    def __complex__(self):
        return complex(float(self))

    def __str__(self):
        return self._text(False)

    def to_eng_string(self, context=None):
        return self._text(True)

    def _text(self, engineering):
        sign = "-" if self._sign else ""
        if self._special:
            return sign + {"inf": "Infinity", "nan": "NaN"}[self._special]
        digits = str(self._int)
        left = self._exp + len(digits)
        if self._exp <= 0 and left > -6:
            point = left
        elif not engineering:
            point = 1
        elif not self._int:
            point = (left + 1) % 3 - 1
        else:
            point = (left - 1) % 3 + 1
        if point <= 0:
            text = "0." + "0" * -point + digits
        elif point >= len(digits):
            text = digits + "0" * (point - len(digits))
        else:
            text = digits[:point] + "." + digits[point:]
        return sign + text + ("" if left == point else "E{:+d}".format(left - point))

    def __repr__(self):
        return "Decimal('{}')".format(self)

    def __format__(self, spec):
        import _format

        if not spec:
            return str(self)
        parts = _format._Spec(spec, ">")
        return _formatted(self, parts, _format)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _formatted(value, parts, forms):
    kind = parts.type
    sign = "-" if value._sign else "" if parts.sign == "-" else parts.sign
    if value._special:
        parts.fill = " " if parts.fill == "0" else parts.fill
        return parts.pad(sign, str(value.copy_abs()))
    rounding = _current[0].rounding
    number = value.copy_abs()
    if kind == "%":
        number = _decimal(0, number._int, number._exp + 2)
    precision = parts.precision
    if kind in ("e", "E"):
        if precision is not None:
            number = number._rescaled(number.adjusted() - precision, rounding)
            if len(str(number._int)) > precision + 1:
                number = number._rescaled(number._exp + 1, rounding)
        digits = str(number._int)
        text = digits[:1] + ("." + digits[1:] if len(digits) > 1 else "") + "e{:+d}".format(number.adjusted())
        text = text.upper() if kind == "E" else text
    elif kind in ("f", "F", "%"):
        if precision is not None:
            number = number._rescaled(-precision, rounding)
        elif number._exp > 0:
            number = number._rescaled(0, rounding)
        text = _plain(number) + ("%" if kind == "%" else "")
    elif kind in ("", "g", "G", "n"):
        if precision is not None and len(str(number._int)) > (precision or 1):
            number = number._rescaled(number.adjusted() - (precision or 1) + 1, rounding)
        text = str(number)
        text = text.lower() if kind == "g" else text
    else:
        raise ValueError("invalid format string")
    if parts.group:
        text = forms._grouped(text, parts, len(sign))
    return parts.pad(sign, text)


def _plain(number):
    digits = str(number._int)
    if number._exp >= 0:
        return digits + "0" * number._exp
    digits = "0" * (1 - number._exp - len(digits)) + digits
    return digits[: number._exp] + "." + digits[number._exp :]


def _decimal(sign, number, exp, special=""):
    made = object.__new__(Decimal)
    made._set(int(sign), number, exp, special)
    return made


def _infinity(value):
    return (-1 if value._sign else 1) if value._special else 0


def _infinity_sign(value):
    return 0 if not value else -1 if value._sign else 1


def _converted(value, floats=False):
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (int, bool)) or (floats and isinstance(value, float)):
        return Decimal(value)
    return None


_ZERO = Decimal(0)
