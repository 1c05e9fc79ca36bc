# What a format specification means, and `str.format` with all that a field can name.


def ascii_(value):
    shown = repr(value)
    out = []
    for char in shown:
        code = ord(char)
        if code < 128:
            out.append(char)
        elif code < 256:
            out.append("\\x%02x" % code)
        elif code < 65536:
            out.append("\\u%04x" % code)
        else:
            out.append("\\U%08x" % code)
    return "".join(out)


def format_(value, spec=""):
    """The built-in `format`."""
    kind = type(value)
    if kind is str:
        return _format_text(value, spec) if spec else value
    if kind is int or kind is float or kind is bool:
        return _format_number(value, spec) if spec else str(value)
    own = getattr(value, "__format__", None)
    if own is not None:
        return own(spec)
    if not spec:
        return str(value)
    if isinstance(value, str):
        return _format_text(str(value), spec)
    if isinstance(value, (int, float)):
        return _format_number(value + 0, spec)
    if isinstance(value, complex):
        sign = "+" if value.imag >= 0 else ""
        return format_(value.real, spec) + sign + format_(value.imag, spec) + "j"
    raise TypeError("unsupported format string passed to {}.__format__".format(kind.__name__))


class _Spec:
    """A specification, taken apart: `[[fill]align][sign][z][#][0][width][grouping][.precision][type]`."""

    def __init__(self, text, default_align):
        self.fill, self.align, self.sign = None, "", "-"
        at = 0
        if len(text) > 1 and text[1] in "<>=^":
            self.fill, self.align, at = text[0], text[1], 2
        elif text and text[0] in "<>=^":
            self.align, at = text[0], 1
        at = self._flags(text, at)
        at, self.width = _number(text, at, 0)
        self.group = ""
        if at < len(text) and text[at] in ",_":
            self.group = text[at]
            at += 1
        self.precision = None
        if at < len(text) and text[at] == ".":
            start = at + 1
            at, self.precision = _number(text, start, None)
            if self.precision is None:
                raise ValueError("Format specifier missing precision")
        self.type = text[at:]
        if len(self.type) > 1:
            raise ValueError("Invalid format specifier '{}'".format(text))
        self.align = self.align or default_align

    def _flags(self, text, at):
        if at < len(text) and text[at] in "+- ":
            self.sign = text[at]
            at += 1
        self.positive_zero = at < len(text) and text[at] == "z"
        at += self.positive_zero
        self.alternate = at < len(text) and text[at] == "#"
        at += self.alternate
        if at < len(text) and text[at] == "0":
            at += 1
            self.fill = self.fill or "0"
            self.align = self.align or "="
        self.fill = self.fill or " "
        return at

    def pad(self, sign, body):
        missing = self.width - len(sign) - len(body)
        if missing <= 0:
            return sign + body
        if self.align == "<":
            return sign + body + self.fill * missing
        if self.align == "=":
            return sign + self.fill * missing + body
        if self.align == "^":
            left = missing // 2
            return self.fill * left + sign + body + self.fill * (missing - left)
        return self.fill * missing + sign + body


def _number(text, at, default):
    start = at
    while at < len(text) and text[at].isdigit():
        at += 1
    return at, int(text[start:at]) if at > start else default


def _format_text(value, text):
    spec = _Spec(text, "<")
    if spec.type not in ("", "s"):
        raise ValueError("Unknown format code '{}' for object of type 'str'".format(spec.type))
    if spec.sign != "-":
        raise ValueError("Sign not allowed in string format specifier")
    if spec.align == "=" and spec.fill == "0":
        spec.align = "<"
    elif spec.align == "=":
        raise ValueError("'=' alignment not allowed in string format specifier")
    if spec.precision is not None:
        value = value[: spec.precision]
    return spec.pad("", value)


def _format_number(value, text):
    spec = _Spec(text, ">")
    kind = spec.type
    if isinstance(value, float) or kind in ("e", "E", "f", "F", "g", "G", "%"):
        value = float(value)
        if kind not in ("", "e", "E", "f", "F", "g", "G", "%", "n"):
            raise ValueError("Unknown format code '{}' for object of type 'float'".format(kind))
        is_negative = value < 0 or str(value) == "-0.0"
        digits = _float_digits(-value if is_negative else value, spec)
        if is_negative and spec.positive_zero and not digits.strip("0."):
            is_negative = False
    else:
        if kind == "c":
            if spec.sign != "-":
                raise ValueError("Sign not allowed with integer format specifier 'c'")
            return spec.pad("", chr(value))
        if kind not in ("", "d", "b", "o", "x", "X", "n"):
            raise ValueError("Unknown format code '{}' for object of type 'int'".format(kind))
        if spec.precision is not None:
            raise ValueError("Precision not allowed in integer format specifier")
        is_negative = value < 0
        digits = _int_digits(abs(int(value)), kind)
    sign = "-" if is_negative else "" if spec.sign == "-" else spec.sign
    if spec.alternate and kind in ("b", "o", "x", "X"):
        sign += "0" + kind
    if spec.group:
        digits = _grouped(digits, spec, len(sign))
    return spec.pad(sign, digits)


def _int_digits(value, kind):
    if kind == "b":
        return bin(value)[2:]
    if kind == "o":
        return oct(value)[2:]
    if kind == "x":
        return hex(value)[2:]
    if kind == "X":
        return hex(value)[2:].upper()
    return str(value)


def _float_digits(value, spec):
    kind, precision = spec.type, spec.precision
    if value != value or value in (float("inf"), float("-inf")):
        digits = "nan" if value != value else "inf"
        digits = digits.upper() if kind in ("E", "F", "G") else digits
        return digits + "%" if kind == "%" else digits
    if kind == "" and precision is None:
        return str(value)
    if kind == "%":
        return _fixed(value * 100, 6 if precision is None else precision) + "%"
    precision = 6 if precision is None else precision
    if kind in ("f", "F"):
        digits = _fixed(value, precision)
        return digits + "." if spec.alternate and not precision else digits
    if kind in ("e", "E"):
        digits = _exponent("%.{}e".format(precision) % value)
    else:
        digits = _general(value, precision or 1, kind == "", spec.alternate)
    return digits.upper() if kind in ("E", "G") else digits


def _fixed(value, precision):
    return "%.{}f".format(precision) % value


def _exponent(text):
    mantissa, exponent = text.split("e")
    sign = exponent[0] if exponent[0] in "+-" else "+"
    number = exponent.lstrip("+-")
    return mantissa + "e" + sign + ("0" + number if len(number) < 2 else number)


def _general(value, precision, is_plain, alternate):
    scientific = _exponent("%.{}e".format(precision - 1) % value)
    mantissa, exponent = scientific.split("e")
    power = int(exponent) if value else 0
    if -4 <= power < precision - (1 if is_plain else 0):
        digits = _fixed(value, precision - 1 - power)
        digits = digits if alternate else _trimmed(digits)
        return digits + ".0" if is_plain and "." not in digits else digits
    return (mantissa if alternate else _trimmed(mantissa)) + "e" + exponent


def _trimmed(digits):
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _grouped(digits, spec, sign_size):
    step = 3 if spec.group == "," or spec.type not in ("b", "o", "x", "X") else 4
    whole, rest = digits, ""
    for index, char in enumerate(digits):
        if char in ".e%":
            whole, rest = digits[:index], digits[index:]
            break
    if spec.align == "=" and spec.fill == "0":
        while len(_in_groups("0" + whole, step, spec.group)) + len(rest) + sign_size <= spec.width:
            whole = "0" + whole
    return _in_groups(whole, step, spec.group) + rest


def _in_groups(whole, step, separator):
    groups = []
    while len(whole) > step:
        groups.append(whole[-step:])
        whole = whole[:-step]
    groups.append(whole)
    groups.reverse()
    return separator.join(groups)


# `str.format`.


def format_text(template, args, names):
    """`template.format(*args, **names)`; `names` may be any mapping."""
    return _Fields(args, names).fill(template, 2)


class _Fields:
    def __init__(self, args, names):
        self._args = args
        self._names = names
        self._next = 0

    def fill(self, template, depth):
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        out = []
        at = 0
        while at < len(template):
            char = template[at]
            if char not in "{}":
                end = at
                while end < len(template) and template[end] not in "{}":
                    end += 1
                out.append(template[at:end])
                at = end
            elif template[at + 1 : at + 2] == char:
                out.append(char)
                at += 2
            elif char == "}":
                raise ValueError("Single '}' encountered in format string")
            else:
                end = _field_end(template, at + 1)
                out.append(self._field(template[at + 1 : end], depth))
                at = end + 1
        return "".join(out)

    def _field(self, field, depth):
        name, conversion, spec = _field_parts(field)
        value = self._value(name)
        if conversion == "r":
            value = repr(value)
        elif conversion == "s":
            value = str(value)
        elif conversion == "a":
            value = ascii_(value)
        elif conversion:
            raise ValueError("Unknown conversion specifier {}".format(conversion))
        if "{" in spec or "}" in spec:
            spec = self.fill(spec, depth - 1)
        return format_(value, spec)

    def _value(self, name):
        at = 0
        while at < len(name) and name[at] not in ".[":
            at += 1
        value = self._first(name[:at])
        while at < len(name):
            is_index = name[at] == "["
            end = at + 1
            while end < len(name) and (name[end] != "]" if is_index else name[end] not in ".["):
                end += 1
            key = name[at + 1 : end]
            if is_index:
                value = value[int(key) if key.isdigit() else key]
                end += 1
            else:
                value = getattr(value, key)
            at = end
        return value

    def _first(self, key):
        if not key:
            if self._next is None:
                raise ValueError("cannot switch from manual field specification to automatic field numbering")
            self._next += 1
            key = str(self._next - 1)
        elif key.isdigit():
            if self._next:
                raise ValueError("cannot switch from automatic field numbering to manual field specification")
            self._next = None
        if key.isdigit():
            if int(key) >= len(self._args):
                raise IndexError("Replacement index {} out of range for positional args tuple".format(key))
            return self._args[int(key)]
        return self._names[key]


def _field_end(template, at):
    depth = 1
    while at < len(template):
        if template[at] == "{":
            depth += 1
        elif template[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise ValueError("expected '}' before end of string")


def _field_parts(field):
    at, in_index = 0, False
    while at < len(field) and (in_index or field[at] not in "!:"):
        if field[at] == "[":
            in_index = True
        elif field[at] == "]":
            in_index = False
        at += 1
    name, conversion = field[:at], ""
    if at < len(field) and field[at] == "!":
        conversion = field[at + 1 : at + 2]
        at += 2
    if at < len(field) and field[at] != ":":
        raise ValueError("expected ':' after conversion specifier")
    return name, conversion, field[at + 1 :]
