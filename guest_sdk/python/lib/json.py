# JSON, strict in both directions as CPython's is: the engine's own reader takes what is not JSON.

INFINITY = float("inf")


class JSONDecodeError(ValueError):
    def __init__(self, msg, doc, pos):
        self.msg = msg
        self.doc = doc
        self.pos = pos
        self.lineno = doc.count("\n", 0, pos) + 1
        self.colno = pos - doc.rfind("\n", 0, pos)
        super().__init__("{}: line {} column {} (char {})".format(msg, self.lineno, self.colno, pos))


_ESCAPES = {34: '"', 92: "\\", 47: "/", 98: "\b", 102: "\f", 110: "\n", 114: "\r", 116: "\t"}
_MAX_DEPTH = 200

# The reader works on UTF-8: a place in the engine's text is found by counting from its beginning.


def _wrong(msg, data, at):
    return JSONDecodeError(msg, str(data, "utf-8"), len(str(data[:at], "utf-8")))


class JSONDecoder:
    def __init__(
        self, *, object_hook=None, parse_float=None, parse_int=None, parse_constant=None, strict=True,
        object_pairs_hook=None
    ):  # fmt: skip
        self._object_hook = object_hook
        self._pairs_hook = object_pairs_hook
        self._float = parse_float or float
        self._int = parse_int or int
        self._constant = parse_constant
        self._strict = strict

    def decode(self, s):
        data = s.encode()
        value, at = self._value(data, _skipped(data, 0), 0)
        at = _skipped(data, at)
        if at != len(data):
            raise _wrong("Extra data", data, at)
        return value

    def raw_decode(self, s, idx=0):
        data = s.encode()
        value, at = self._value(data, len(s[:idx].encode()), 0)
        return value, len(str(data[:at], "utf-8"))

    def _value(self, s, at, depth):
        if at >= len(s):
            raise _wrong("Expecting value", s, at)
        char = s[at]
        if char == 34:
            return self._string(s, at + 1)
        if char == 123 or char == 91:
            if depth >= _MAX_DEPTH:
                raise RecursionError("maximum recursion depth exceeded while decoding a JSON document")
            return (self._object if char == 123 else self._array)(s, at + 1, depth + 1)
        if char == 45 or 48 <= char <= 57:
            if s[at + 1 : at + 2] != b"I":
                return self._number(s, at)
        for word, value in _WORDS:
            if char == word[0] and s.startswith(word, at):
                return value, at + len(word)
        for word, value in _CONSTANTS:
            if char == word[0] and s.startswith(word, at):
                return (value if self._constant is None else self._constant(str(word, "utf-8"))), at + len(word)
        raise _wrong("Expecting value", s, at)

    def _object(self, s, at, depth):
        pairs = []
        at = _skipped(s, at)
        if s[at : at + 1] == b"}":
            return self._made(pairs), at + 1
        while True:
            if s[at : at + 1] != b'"':
                raise _wrong("Expecting property name enclosed in double quotes", s, at)
            key, at = self._string(s, at + 1)
            at = _skipped(s, at)
            if s[at : at + 1] != b":":
                raise _wrong("Expecting ':' delimiter", s, at)
            value, at = self._value(s, _skipped(s, at + 1), depth)
            pairs.append((key, value))
            at = _skipped(s, at)
            char = s[at : at + 1]
            if char == b"}":
                return self._made(pairs), at + 1
            if char != b",":
                raise _wrong("Expecting ',' delimiter", s, at)
            at = _skipped(s, at + 1)

    def _made(self, pairs):
        if self._pairs_hook is not None:
            return self._pairs_hook(pairs)
        made = dict(pairs)
        return made if self._object_hook is None else self._object_hook(made)

    def _array(self, s, at, depth):
        values = []
        at = _skipped(s, at)
        if s[at : at + 1] == b"]":
            return values, at + 1
        while True:
            value, at = self._value(s, at, depth)
            values.append(value)
            at = _skipped(s, at)
            char = s[at : at + 1]
            if char == b"]":
                return values, at + 1
            if char != b",":
                raise _wrong("Expecting ',' delimiter", s, at)
            at = _skipped(s, at + 1)

    def _number(self, s, at):
        start = at
        if s[at] == 45:
            at += 1
        first = at
        at = _digits(s, at)
        if at == first:
            raise _wrong("Expecting value", s, start)
        if s[first] == 48 and at > first + 1:
            # A number ends after a leading zero.
            at = first + 1
        whole = at
        if s[at : at + 1] == b".":
            end = _digits(s, at + 1)
            at = end if end > at + 1 else at
        if at < len(s) and s[at] in b"eE":
            sign = at + 1 + (s[at + 1 : at + 2] in (b"+", b"-"))
            end = _digits(s, sign)
            at = end if end > sign else at
        text = str(s[start:at], "utf-8")
        return (self._int(text) if at == whole else self._float(text)), at

    def _string(self, s, at):
        begin = at - 1
        parts = []
        while True:
            quote = s.find(b'"', at)
            if quote < 0:
                raise _wrong("Unterminated string starting at", s, begin)
            slash = s.find(b"\\", at, quote)
            end = quote if slash < 0 else slash
            part = s[at:end]
            if self._strict and part and min(part) < 32:
                self._refuse(s, at, part)
            part = str(part, "utf-8")
            if slash < 0:
                if not parts:
                    return part, quote + 1
                parts.append(part)
                return "".join(parts), quote + 1
            parts.append(part)
            char, at = _unescaped(s, slash, begin)
            parts.append(char)

    def _refuse(self, s, at, part):
        for index, char in enumerate(part):
            if char < 32:
                raise _wrong("Invalid control character at", s, at + index)


def _skipped(s, at):
    while at < len(s) and s[at] <= 32 and s[at] in b" \t\n\r":
        at += 1
    return at


def _digits(s, at):
    while at < len(s) and 48 <= s[at] <= 57:
        at += 1
    return at


def _unescaped(s, slash, begin):
    if slash + 1 >= len(s):
        raise _wrong("Unterminated string starting at", s, begin)
    char = s[slash + 1]
    if char != 117:
        if char not in _ESCAPES:
            raise _wrong("Invalid \\escape", s, slash)
        return _ESCAPES[char], slash + 2
    code = _unit(s, slash + 2, slash)
    at = slash + 6
    if 0xD800 <= code < 0xDC00 and s[at : at + 2] == b"\\u":
        low = _unit(s, at + 2, at)
        if 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 6
    # Half of a pair is no character that the engine could keep.
    return ("\ufffd" if 0xD800 <= code < 0xE000 else chr(code)), at


def _unit(s, at, slash):
    digits = s[at : at + 4]
    if len(digits) == 4 and all([char in b"0123456789abcdefABCDEF" for char in digits]):
        return int(str(digits, "utf-8"), 16)
    raise _wrong("Invalid \\uXXXX escape", s, slash + 1)


_WORDS = ((b"null", None), (b"true", True), (b"false", False))
_CONSTANTS = ((b"NaN", float("nan")), (b"Infinity", INFINITY), (b"-Infinity", -INFINITY))

_default_decoder = JSONDecoder()


def loads(s, *, cls=None, **options):
    if isinstance(s, (bytes, bytearray)):
        s = str(bytes(s), "utf-8")
    elif not isinstance(s, str):
        raise TypeError("the JSON object must be str, bytes or bytearray, not {}".format(type(s).__name__))
    decoder = _default_decoder if cls is None and not options else (cls or JSONDecoder)(**options)
    return decoder.decode(s)


def load(fp, **options):
    return loads(fp.read(), **options)


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _quoted(text, ascii_only):
    for char in text:
        if char < " " or char in '"\\' or (ascii_only and char > "~"):
            break
    else:
        return '"' + text + '"'
    out = []
    for char in text:
        code = ord(char)
        if char in _SHORT:
            out.append(_SHORT[char])
        elif code < 32 or (ascii_only and 126 < code < 65536):
            out.append("\\u%04x" % code)
        elif ascii_only and code >= 65536:
            code -= 65536
            out.append("\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)))
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


class JSONEncoder:
    item_separator = ", "
    key_separator = ": "

    def __init__(
        self, *, skipkeys=False, ensure_ascii=True, check_circular=True, allow_nan=True, sort_keys=False, indent=None,
        separators=None, default=None
    ):  # fmt: skip
        self._skipkeys = skipkeys
        self._ascii = ensure_ascii
        self._allow_nan = allow_nan
        self._sort = sort_keys
        self._indent = " " * indent if isinstance(indent, int) else indent
        if separators is not None:
            self.item_separator, self.key_separator = separators
        elif indent is not None:
            self.item_separator = ","
        if default is not None:
            self.default = default

    def default(self, o):
        raise TypeError("Object of type {} is not JSON serializable".format(type(o).__name__))

    def encode(self, o):
        out = []
        self._add(o, out.append, "\n", [])
        return "".join(out)

    def iterencode(self, o):
        yield self.encode(o)

    def _add(self, value, add, line, around):
        if value is None:
            add("null")
        elif value is True:
            add("true")
        elif value is False:
            add("false")
        elif isinstance(value, str):
            add(_quoted(str(value), self._ascii))
        elif isinstance(value, int):
            add(str(value + 0))
        elif isinstance(value, float):
            add(self._number(value))
        elif isinstance(value, dict):
            self._inside(self._add_dict, value, add, line, around)
        elif isinstance(value, (list, tuple)):
            self._inside(self._add_list, value, add, line, around)
        elif getattr(value, "_mixin_", None) in (int, str) and hasattr(value, "_value_"):
            self._add(value._value_, add, line, around)
        else:
            self._inside(self._add_other, value, add, line, around)

    def _inside(self, method, value, add, line, around):
        for one in around:
            if one is value:
                raise ValueError("Circular reference detected")
        if len(around) >= _MAX_DEPTH:
            raise RecursionError("maximum recursion depth exceeded while encoding a JSON object")
        around.append(value)
        method(value, add, line, around)
        around.pop()

    def _add_other(self, value, add, line, around):
        self._add(self.default(value), add, line, around)

    def _number(self, value):
        if value != value or value in (INFINITY, -INFINITY):
            if not self._allow_nan:
                raise ValueError("Out of range float values are not JSON compliant")
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return str(value)

    def _add_list(self, values, add, line, around):
        if not len(values):
            add("[]")
            return
        inner = line if self._indent is None else line + self._indent
        add("[")
        first = True
        for value in values:
            if not first:
                add(self.item_separator)
            first = False
            if self._indent is not None:
                add(inner)
            self._add(value, add, inner, around)
        if self._indent is not None:
            add(line)
        add("]")

    def _add_dict(self, values, add, line, around):
        if not len(values):
            add("{}")
            return
        inner = line if self._indent is None else line + self._indent
        add("{")
        first = True
        items = values.items()
        for key, value in sorted(items, key=lambda item: item[0]) if self._sort else items:
            key = self._key(key)
            if key is None:
                continue
            if not first:
                add(self.item_separator)
            first = False
            if self._indent is not None:
                add(inner)
            add(_quoted(key, self._ascii))
            add(self.key_separator)
            self._add(value, add, inner, around)
        if self._indent is not None and not first:
            add(line)
        add("}")

    def _key(self, key):
        if isinstance(key, str):
            return key
        if key is None or key is True or key is False:
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, int):
            return str(key)
        if isinstance(key, float):
            return self._number(key)
        if getattr(key, "_mixin_", None) in (int, str):
            return str(key._value_)
        if self._skipkeys:
            return None
        raise TypeError("keys must be str, int, float, bool or None, not {}".format(type(key).__name__))


_default_encoder = JSONEncoder()


def dumps(obj, *, cls=None, **options):
    encoder = _default_encoder if cls is None and not options else (cls or JSONEncoder)(**options)
    return encoder.encode(obj)


def dump(obj, fp, **options):
    fp.write(dumps(obj, **options))
