# Methods of text and bytes that the engine lacks, or has with fewer parameters. Letters are those of ASCII, as in
# the engine's own methods.


def _empty(text):
    return text[:0]


def removeprefix(text, prefix):
    return text[len(prefix) :] if text.startswith(prefix) else text


def removesuffix(text, suffix):
    return text[: len(text) - len(suffix)] if suffix and text.endswith(suffix) else text


def _fill(text, fill, count):
    if fill is None:
        fill = " " if isinstance(text, str) else b" "
    if len(fill) != 1:
        raise TypeError("The fill character must be exactly one character long")
    return fill * count if count > 0 else _empty(text)


def ljust(text, width, fillchar=None):
    return text + _fill(text, fillchar, width - len(text))


def rjust(text, width, fillchar=None):
    return _fill(text, fillchar, width - len(text)) + text


def center(text, width, fillchar=None):
    missing = width - len(text)
    if missing <= 0:
        return text
    left = missing // 2 + (missing & width & 1)
    return _fill(text, fillchar, left) + text + _fill(text, fillchar, missing - left)


def zfill(text, width):
    zero = "0" if isinstance(text, str) else b"0"
    signs = ("+", "-") if isinstance(text, str) else (b"+", b"-")
    missing = width - len(text)
    if missing <= 0:
        return text
    if text[:1] in signs:
        return text[:1] + zero * missing + text[1:]
    return zero * missing + text


def expandtabs(text, tabsize=8):
    out = []
    column = 0
    for char in text:
        if char == "\t":
            count = tabsize - column % tabsize if tabsize > 0 else 0
            out.append(" " * count)
            column += count
        else:
            out.append(char)
            column = 0 if char in "\r\n" else column + 1
    return "".join(out)


def capitalize(text):
    return text[:1].upper() + text[1:].lower()


def title(text):
    out = []
    inside = False
    for char in text:
        out.append(char.lower() if inside else char.upper())
        inside = _is_letter(char)
    return "".join(out)


def swapcase(text):
    return "".join([char.lower() if char.isupper() else char.upper() for char in text])


def _is_letter(char):
    return char.isalpha() or ord(char) > 0xBF


def isalnum(text):
    return bool(text) and all([char.isdigit() or _is_letter(char) for char in text])


def isdecimal(text):
    return bool(text) and text.isdigit()


def isascii(text):
    return all([ord(char) < 128 for char in text]) if isinstance(text, str) else all([byte < 128 for byte in text])


def isprintable(text):
    return all([31 < ord(char) < 127 or ord(char) > 160 for char in text])


def isidentifier(text):
    if not text or text[0].isdigit():
        return False
    return all([char == "_" or char.isdigit() or _is_letter(char) for char in text])


def istitle(text):
    inside = found = False
    for char in text:
        if char.isupper():
            if inside:
                return False
            inside = found = True
        elif char.islower():
            if not inside:
                return False
        else:
            inside = False
    return found


def maketrans(source, target=None, delete=""):
    if target is None:
        return {ord(key) if isinstance(key, str) else key: value for key, value in source.items()}
    if len(source) != len(target):
        raise ValueError("the first two maketrans arguments must have equal length")
    table = {ord(one): ord(other) for one, other in zip(source, target)}
    for char in delete:
        table[ord(char)] = None
    return table


def translate(text, table):
    out = []
    for char in text:
        try:
            value = table[ord(char)]
        except LookupError:
            value = char
        if value is not None:
            out.append(chr(value) if isinstance(value, int) else value)
    return "".join(out)


def format_map(text, mapping):
    from _format import format_text

    return format_text(text, (), mapping)


def split(text, sep=None, maxsplit=-1):
    return text.split(sep, maxsplit)


def rsplit(text, sep=None, maxsplit=-1):
    if sep is not None:
        return text.rsplit(sep, maxsplit)
    if maxsplit < 0:
        return text.split()
    parts = []
    text = text.rstrip()
    while text and len(parts) < maxsplit:
        words = text.split()
        parts.append(words[-1])
        text = text[: len(text) - len(words[-1])].rstrip()
    if text:
        parts.append(text)
    parts.reverse()
    return parts


def splitlines(text, keepends=False):
    return text.splitlines(keepends)


def replace(text, old, new, count=-1):
    return text.replace(old, new, count)


_UTF8 = ("utf-8", "utf8", "utf_8")
_SINGLE_BYTE = {"ascii": 128, "us-ascii": 128, "latin-1": 256, "latin1": 256, "iso-8859-1": 256, "latin_1": 256}


def encode(text, encoding="utf-8", errors="strict"):
    if not isinstance(encoding, str):
        raise TypeError("encoding must be str, not {}".format(type(encoding).__name__))
    name = encoding.lower()
    if name in _UTF8:
        return text.encode()
    if name == "utf-8-sig":
        return b"\xef\xbb\xbf" + text.encode()
    if name not in _SINGLE_BYTE:
        return _encode_wide(text, name, encoding)
    top = _SINGLE_BYTE[name]
    out = bytearray()
    for index, char in enumerate(text):
        code = ord(char)
        if code < top:
            out.append(code)
        else:
            out.extend(_not_encodable(char, index, encoding, top, errors))
    return bytes(out)


def _not_encodable(char, index, encoding, top, errors):
    code = ord(char)
    if errors == "ignore":
        return b""
    if errors == "replace":
        return b"?"
    if errors == "xmlcharrefreplace":
        return "&#{};".format(code).encode()
    if errors == "backslashreplace":
        form = "\\x{:02x}" if code < 256 else "\\u{:04x}" if code < 65536 else "\\U{:08x}"
        return form.format(code).encode()
    text = "'{}' codec can't encode character {!r} in position {}: ordinal not in range({})"
    raise UnicodeError(text.format(encoding, char, index, top))


def _encode_wide(text, name, encoding):
    name = name.replace("_", "-")
    if name not in ("utf-16", "utf-16-le", "utf-16-be", "utf-16le", "utf-16be"):
        raise LookupError("unknown encoding: {}".format(encoding))
    order = "big" if name.endswith("be") else "little"
    out = bytearray(b"\xff\xfe" if name == "utf-16" else b"")
    for char in text:
        code = ord(char)
        units = (code,) if code < 65536 else (0xD800 + ((code - 65536) >> 10), 0xDC00 + ((code - 65536) & 0x3FF))
        for unit in units:
            out.extend(unit.to_bytes(2, order))
    return bytes(out)


def decode(data, encoding="utf-8", errors="strict"):
    name = encoding.lower()
    data = bytes(data)
    if name == "utf-8-sig":
        data = data[3:] if data[:3] == b"\xef\xbb\xbf" else data
        name = "utf-8"
    if name in _UTF8:
        return str(data, "utf-8") if errors == "strict" else _decode_utf8(data, errors)
    if name not in _SINGLE_BYTE:
        raise LookupError("unknown encoding: {}".format(encoding))
    top = _SINGLE_BYTE[name]
    out = []
    for index, byte in enumerate(data):
        if byte < top:
            out.append(chr(byte))
        elif errors == "replace":
            out.append("\ufffd")
        elif errors != "ignore":
            text = "'{}' codec can't decode byte {} in position {}: ordinal not in range({})"
            raise UnicodeError(text.format(encoding, hex(byte), index, top))
    return "".join(out)


def _decode_utf8(data, errors):
    if errors not in ("replace", "ignore", "backslashreplace"):
        raise LookupError("unknown error handler name '{}'".format(errors))
    out = []
    at = 0
    while at < len(data):
        size = _sequence_size(data, at)
        if size > 0:
            out.append(str(data[at : at + size], "utf-8"))
        else:
            size = -size
            if errors == "replace":
                out.append("\ufffd")
            elif errors == "backslashreplace":
                out.extend(["\\x%02x" % byte for byte in data[at : at + size]])
        at += size
    return "".join(out)


def _sequence_size(data, at):
    """Bytes of the code point here; negative, of what is not one."""
    first = data[at]
    if first < 0x80:
        return 1
    if 0xC2 <= first < 0xE0:
        need, low, high = 1, 0x80, 0xBF
    elif 0xE0 <= first < 0xF0:
        need, low, high = 2, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first < 0xF5:
        need, low, high = 3, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return -1
    for step in range(1, need + 1):
        if at + step >= len(data) or not low <= data[at + step] <= high:
            return -step
        low, high = 0x80, 0xBF
    return need + 1


def hex_bytes(data, sep="", bytes_per_sep=1):
    plain = "".join(["%02x" % byte for byte in data])
    if not sep:
        return plain
    pairs = [plain[at : at + 2] for at in range(0, len(plain), 2)]
    size = abs(bytes_per_sep)
    groups = []
    start = len(pairs) % size if bytes_per_sep > 0 else 0
    if start:
        groups.append("".join(pairs[:start]))
    for at in range(start, len(pairs), size):
        groups.append("".join(pairs[at : at + size]))
    return sep.join(groups)


_BOTH = {
    "removeprefix": removeprefix,
    "removesuffix": removesuffix,
    "ljust": ljust,
    "rjust": rjust,
    "center": center,
    "zfill": zfill,
    "isascii": isascii,
}

STR = dict(_BOTH)
STR.update(
    {
        "casefold": lambda text: text.lower(),
        "capitalize": capitalize,
        "title": title,
        "swapcase": swapcase,
        "expandtabs": expandtabs,
        "isalnum": isalnum,
        "isdecimal": isdecimal,
        "isnumeric": isdecimal,
        "isprintable": isprintable,
        "isidentifier": isidentifier,
        "istitle": istitle,
        "maketrans": staticmethod(maketrans),
        "translate": translate,
        "format_map": format_map,
    }
)

BYTES = dict(_BOTH)
