# Attributes and methods of numbers that the engine lacks.


def to_bytes(value, length=1, byteorder="big", *, signed=False):
    if value < 0:
        if not signed:
            raise OverflowError("can't convert negative int to unsigned")
        if value < -(1 << (8 * length - 1)):
            raise OverflowError("int too big to convert")
        value += 1 << (8 * length)
    elif value >> (8 * length - bool(signed)):
        raise OverflowError("int too big to convert")
    return value.to_bytes(length, byteorder)


def from_bytes(data, byteorder="big", *, signed=False):
    data = bytes(data)
    value = int.from_bytes(data, byteorder)
    if signed and data and value >> (8 * len(data) - 1):
        value -= 1 << (8 * len(data))
    return value


def bit_length(value):
    value = abs(value)
    return len(bin(value)) - 2 if value else 0


def bit_count(value):
    return bin(abs(value)).count("1")


def as_integer_ratio(value):
    if value != value:
        raise ValueError("cannot convert NaN to integer ratio")
    if value in (float("inf"), float("-inf")):
        raise OverflowError("cannot convert Infinity to integer ratio")
    denominator = 1
    while value != int(value):
        value *= 2
        denominator *= 2
    return int(value), denominator


def is_integer(value):
    return value == value and value not in (float("inf"), float("-inf")) and value == int(value)


def to_hex(value):
    if value != value:
        return "nan"
    sign = "-" if value < 0 or str(value) == "-0.0" else ""
    value = abs(value)
    if value == float("inf"):
        return sign + "inf"
    if not value:
        return sign + "0x0.0p+0"
    power = 0
    while value >= 2:
        value, power = value / 2, power + 1
    while value < 1 and power > -1022:
        value, power = value * 2, power - 1
    whole = int(value)
    digits = hex(int((value - whole) * (1 << 52)))[2:]
    digits = "0" * (13 - len(digits)) + digits
    return "{}0x{}.{}p{}{}".format(sign, whole, digits, "+" if power >= 0 else "-", abs(power))


def from_hex(text):
    text = text.strip().lower()
    sign = -1.0 if text.startswith("-") else 1.0
    text = text.lstrip("+-")
    if text in ("inf", "infinity", "nan"):
        return sign * float(text[:3])
    if text.startswith("0x"):
        text = text[2:]
    digits, _, power = text.partition("p")
    whole, _, fraction = digits.partition(".")
    number = int((whole + fraction) or "x", 16)
    exponent = int(power or "0") - 4 * len(fraction)
    return sign * (number * 2.0**exponent if exponent > -1000 else number * 2.0**-1000 * 2.0 ** (exponent + 1000))


def _identity(value):
    return value


INT = {
    "bit_length": bit_length,
    "bit_count": bit_count,
    "as_integer_ratio": lambda value: (value, 1),
    "is_integer": lambda value: True,
    "conjugate": _identity,
    "real": property(_identity),
    "imag": property(lambda value: 0),
    "numerator": property(_identity),
    "denominator": property(lambda value: 1),
}

FLOAT = {
    "is_integer": is_integer,
    "as_integer_ratio": as_integer_ratio,
    "hex": to_hex,
    "fromhex": staticmethod(from_hex),
    "conjugate": _identity,
    "real": property(_identity),
    "imag": property(lambda value: 0.0),
}

COMPLEX = {"conjugate": lambda value: complex(value.real, -value.imag)}
