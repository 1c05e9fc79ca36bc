# Regular expressions, as CPython has them. The engine's own `re` has neither named groups nor counted repeats,
# look-arounds or flags, and recurses on the native stack; this one has a bound on steps and none on the stack.

from _re_match import MATCH, Compiler, Runner
from _re_parse import _ESCAPES, A, I, L, M, Parser, S, U, X, error

ASCII, IGNORECASE, MULTILINE, DOTALL, VERBOSE, LOCALE, UNICODE = A, I, M, S, X, L, U
NOFLAG = 0
PatternError = error

_MAX_KEPT = 32
_kept = {}


class Match:
    def __init__(self, pattern, string, pos, endpos, saved):
        self.re = pattern
        self.string = string
        self.pos = pos
        self.endpos = endpos
        self._saved = saved

    def _number(self, group):
        if isinstance(group, str):
            group = self.re.groupindex.get(group, -1)
        if not isinstance(group, int) or not 0 <= group <= self.re.groups:
            raise IndexError("no such group")
        return group

    def _value(self, group, default=None):
        number = self._number(group)
        start, end = self._saved[2 * number], self._saved[2 * number + 1]
        return default if start < 0 or end < 0 else self.string[start:end]

    def group(self, *groups):
        if not groups:
            return self._value(0)
        if len(groups) == 1:
            return self._value(groups[0])
        return tuple([self._value(group) for group in groups])

    __getitem__ = _value

    def groups(self, default=None):
        return tuple([self._value(number, default) for number in range(1, self.re.groups + 1)])

    def groupdict(self, default=None):
        return {name: self._value(name, default) for name in self.re.groupindex}

    def span(self, group=0):
        number = self._number(group)
        start, end = self._saved[2 * number], self._saved[2 * number + 1]
        return (-1, -1) if end < 0 else (start, end)

    def start(self, group=0):
        return self.span(group)[0]

    def end(self, group=0):
        return self.span(group)[1]

    @property
    def lastindex(self):
        # The group that was closed last; of those that end together, the outermost.
        best = None
        for number in range(1, self.re.groups + 1):
            start, end = self.span(number)
            if end < 0:
                continue
            if best is None or end > self.end(best) or (end == self.end(best) and start > self.start(best)):
                best = number
        return best

    @property
    def lastgroup(self):
        for name, number in self.re.groupindex.items():
            if number == self.lastindex:
                return name
        return None

    def expand(self, template):
        return _filled(_template(template, self.re), self)

    def __bool__(self):
        return True

    def __repr__(self):
        return "<re.Match object; span={!r}, match={!r}>".format(self.span(), self.group())


class Pattern:
    def __init__(self, pattern, flags):
        self._is_bytes = isinstance(pattern, (bytes, bytearray))
        parser = Parser(_as_text(pattern), flags)
        node = parser.parse()
        compiler = Compiler()
        compiler.add(node)
        compiler.emit(MATCH)
        self.pattern = pattern
        self.flags = parser.flags | (0 if self._is_bytes or parser.flags & A else U)
        self.groups = parser.groups
        self.groupindex = parser.names
        self._code = compiler.code
        self._marks = compiler.marks
        self._prefix = _prefix(node)
        self._first = _first(node)
        self._anchored = node[0] == "at" and node[1] in ("start", "A") or (
            node[0] == "seq" and bool(node[1]) and node[1][0][0] == "at" and node[1][0][1] in ("start", "A")
        )

    def _begin(self, string, pos, endpos):
        if isinstance(string, (bytes, bytearray)) != self._is_bytes:
            one, other = ("bytes", "string") if self._is_bytes else ("string", "bytes-like")
            raise TypeError("cannot use a {} pattern on a {} object".format(one, other))
        if not isinstance(string, (str, bytes, bytearray)):
            raise TypeError("expected string or bytes-like object, got '{}'".format(type(string).__name__))
        text = _as_text(string)
        end = len(text) if endpos is None else max(0, min(endpos, len(text)))
        return text, max(0, min(pos, len(text))), end

    def _at(self, string, pos, endpos, whole):
        text, pos, end = self._begin(string, pos, endpos)
        runner = Runner(text, end, self.groups, self._marks)
        return self._match(runner, string, pos, pos, end, whole)

    def _match(self, runner, string, at, pos, end, whole=False, least=-1):
        saved = runner.fresh()
        stop = runner.run(self._code, at, saved, whole, least)
        if stop < 0:
            return None
        saved[0], saved[1] = at, stop
        return Match(self, string, pos, end, saved)

    def match(self, string, pos=0, endpos=None):
        return self._at(string, pos, endpos, False)

    def fullmatch(self, string, pos=0, endpos=None):
        return self._at(string, pos, endpos, True)

    def search(self, string, pos=0, endpos=None):
        text, pos, end = self._begin(string, pos, endpos)
        return self._search(Runner(text, end, self.groups, self._marks), string, pos, pos, end)

    def _search(self, runner, string, at, pos, end, least=-1):
        prefix, first, chars = self._prefix, self._first, runner.text
        while at <= end:
            if prefix:
                at = runner.source.find(prefix, at, end)
                if at < 0:
                    return None
            elif first is not None:
                while at < end and not first(chars[at]):
                    at += 1
                if at >= end:
                    return None
            found = self._match(runner, string, at, pos, end, False, least)
            if found is not None:
                return found
            if self._anchored:
                return None
            at += 1
        return None

    def finditer(self, string, pos=0, endpos=None):
        text, pos, end = self._begin(string, pos, endpos)
        runner = Runner(text, end, self.groups, self._marks)
        at, least = pos, -1
        while at <= end:
            found = self._search(runner, string, at, pos, end, least)
            if found is None:
                return
            yield found
            # After a match that was empty, the next one there may not be.
            least = found.end() + 1 if found.end() == found.start() else -1
            at = found.end()

    def findall(self, string, pos=0, endpos=None):
        empty = string[:0]
        out = []
        for found in self.finditer(string, pos, endpos):
            if not self.groups:
                out.append(found.group())
            elif self.groups == 1:
                out.append(found._value(1, empty))
            else:
                out.append(found.groups(empty))
        return out

    def split(self, string, maxsplit=0):
        out = []
        at = 0
        for found in self.finditer(string):
            if maxsplit and len(out) >= maxsplit * (1 + self.groups):
                break
            out.append(string[at : found.start()])
            out.extend(found.groups())
            at = found.end()
        out.append(string[at:])
        return out

    def subn(self, repl, string, count=0):
        parts = None if callable(repl) else _template(repl, self)
        out = []
        at = done = 0
        for found in self.finditer(string):
            if count and done >= count:
                break
            out.append(string[at : found.start()])
            out.append(repl(found) if parts is None else _filled(parts, found))
            at = found.end()
            done += 1
        out.append(string[at:])
        return string[:0].join(out), done

    def sub(self, repl, string, count=0):
        return self.subn(repl, string, count)[0]

    def __repr__(self):
        return "re.compile({!r})".format(self.pattern)

    def __eq__(self, other):
        return isinstance(other, Pattern) and self.pattern == other.pattern and self.flags == other.flags

    def __hash__(self):
        return hash(self.pattern)


def _as_text(value):
    # Of bytes, each is a character.
    return value if isinstance(value, str) else "".join([chr(byte) for byte in value])


def _prefix(node):
    """Characters that every match begins with."""
    out = []
    for part in node[1] if node[0] == "seq" else [node]:
        if part[0] != "char":
            break
        out.append(part[1])
    return "".join(out)


def _first(node):
    """A test that the first character of every match passes; `None` if there is none."""
    kind = node[0]
    if kind == "set":
        return node[1]
    if kind == "char":
        return lambda char: char == node[1]
    if kind == "group":
        return _first(node[2])
    if kind == "seq":
        return _first(node[1][0]) if node[1] else None
    if kind == "repeat":
        return _first(node[1]) if node[2] else None
    if kind == "alt":
        tests = [_first(part) for part in node[1]]
        return None if None in tests else lambda char: any([test(char) for test in tests])
    return None


def _template(repl, pattern):
    """Pieces of a replacement: text, and numbers of groups."""
    is_bytes = not isinstance(repl, str)
    text = _as_text(repl)
    parts = []
    plain = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            plain.append(char)
            continue
        char = text[at : at + 1]
        at += 1
        number = None
        if char == "g":
            end = text.find(">", at)
            name = text[at + 1 : end]
            if text[at : at + 1] != "<" or end < 0:
                raise error("missing group name", repl, at)
            number = int(name) if name.isdigit() else pattern.groupindex.get(name)
            if number is None:
                raise IndexError("unknown group name {!r}".format(name))
            at = end + 1
        elif char and char in "123456789":
            number = char
            if text[at : at + 1].isdigit():
                number += text[at]
                at += 1
            number = int(number)
        elif char == "0":
            plain.append("\0")
        elif char in _ESCAPES:
            plain.append(_ESCAPES[char])
        elif char == "\\":
            plain.append(char)
        elif "a" <= char <= "z" or "A" <= char <= "Z":
            raise error("bad escape \\" + char, repl, at - 2)
        else:
            plain.append("\\" + char)
        if number is not None:
            if number > pattern.groups:
                raise error("invalid group reference {}".format(number), repl, at - 1)
            parts.append("".join(plain))
            parts.append(number)
            plain = []
    parts.append("".join(plain))
    if is_bytes:
        parts = [part if isinstance(part, int) else bytes([ord(char) for char in part]) for part in parts]
    return parts


def _filled(parts, found):
    empty = found.string[:0]
    return empty.join([found._value(part, empty) if isinstance(part, int) else part for part in parts])


def compile(pattern, flags=0):
    if isinstance(pattern, Pattern):
        if flags:
            raise ValueError("cannot process flags argument with a compiled pattern")
        return pattern
    key = (pattern, flags)
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= _MAX_KEPT:
            del _kept[next(iter(_kept))]
        found = _kept[key] = Pattern(pattern, flags)
    return found


def match(pattern, string, flags=0):
    return compile(pattern, flags).match(string)


def fullmatch(pattern, string, flags=0):
    return compile(pattern, flags).fullmatch(string)


def search(pattern, string, flags=0):
    return compile(pattern, flags).search(string)


def findall(pattern, string, flags=0):
    return compile(pattern, flags).findall(string)


def finditer(pattern, string, flags=0):
    return compile(pattern, flags).finditer(string)


def split(pattern, string, maxsplit=0, flags=0):
    return compile(pattern, flags).split(string, maxsplit)


def sub(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).sub(repl, string, count)


def subn(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).subn(repl, string, count)


def purge():
    _kept.clear()


_SPECIAL = "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"


def escape(pattern):
    text = "".join(["\\" + char if char in _SPECIAL else char for char in _as_text(pattern)])
    return text if isinstance(pattern, str) else bytes([ord(char) for char in text])
