# From a pattern's text to a tree of nodes.
#
# A node is a tuple; its first part says what it is:
#   ("set", test)                a character for which `test(character)` holds
#   ("char", c)                  one character
#   ("seq", [nodes]) ("alt", [nodes])
#   ("group", number, node)      a group that captures
#   ("repeat", node, least, most, greedy, possessive)
#   ("look", node, ahead, wanted) ("atomic", node) ("back", number, ignore case) ("at", kind)
#   ("if", number, node, node)

A, I, M, S, X, L, U = 256, 2, 8, 16, 64, 4, 32
_LETTERS = {"a": A, "i": I, "m": M, "s": S, "x": X, "u": U, "L": L}

_ENDLESS = 1 << 30
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_MAX_DEPTH = 60


class error(Exception):
    def __init__(self, msg, pattern=None, pos=None):
        self.msg = msg
        self.pattern = pattern
        self.pos = pos
        super().__init__(msg if pos is None else "{} at position {}".format(msg, pos))


def is_word(char):
    if char < "\x80":
        return char == "_" or "0" <= char <= "9" or "a" <= char <= "z" or "A" <= char <= "Z"
    # There are no tables of Unicode here: from A with grave on, all but punctuation counts as letters.
    return char > "\xbf" and char not in "\xd7\xf7" and not "\u2000" <= char <= "\u2bff" and char < "\U0001f000"


def _is_digit(char):
    return "0" <= char <= "9"


def _is_space(char):
    return char in " \t\n\r\f\v\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000"


_CLASSES = {"d": _is_digit, "w": is_word, "s": _is_space}


def class_test(letter):
    """The test of `\\d`, `\\W`, …"""
    test = _CLASSES[letter.lower()]
    return test if letter.islower() else lambda char: not test(char)


class Parser:
    def __init__(self, text, flags):
        self.text = text
        self.flags = flags
        self.at = 0
        self.groups = 0
        self.names = {}
        self._closed = set()
        self._depth = 0

    def parse(self):
        node = self._alternatives(self.flags)
        if self.at < len(self.text):
            raise self._error("unbalanced parenthesis")
        return node

    def _error(self, message, pos=None):
        return error(message, self.text, self.at if pos is None else pos)

    def _peek(self, count=1):
        return self.text[self.at : self.at + count]

    def _take(self, part):
        if self.text.startswith(part, self.at):
            self.at += len(part)
            return True
        return False

    def _alternatives(self, flags):
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("groups are nested too deeply")
        branches = []
        while True:
            branch, flags = self._sequence(flags)
            branches.append(branch)
            if not self._take("|"):
                break
        self._depth -= 1
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def _sequence(self, flags):
        nodes = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "|)":
                break
            if flags & X and self._skipped(char):
                continue
            start = self.at
            node = self._item(flags)
            if isinstance(node, int):
                # Flags of the whole pattern.
                flags |= node
                self.flags |= node
                continue
            if node is not None:
                nodes.append(self._repeated(node, start, flags))
        return (nodes[0] if len(nodes) == 1 else ("seq", nodes)), flags

    def _skipped(self, char):
        if char in " \t\n\r\f\v":
            self.at += 1
            return True
        if char == "#":
            while self.at < len(self.text) and self.text[self.at] != "\n":
                self.at += 1
            return True
        return False

    def _repeated(self, node, start, flags):
        repeated = False
        while self.at < len(self.text):
            if flags & X:
                while self.at < len(self.text) and self._skipped(self.text[self.at]):
                    pass
            place = self.at
            bounds = self._bounds()
            if bounds is None:
                break
            if repeated:
                raise self._error("multiple repeat", place)
            if node[0] == "at" and node[1] != "b":
                raise self._error("nothing to repeat", start)
            repeated = True
            possessive = self._take("+")
            greedy = possessive or not self._take("?")
            node = ("repeat", node, bounds[0], bounds[1], greedy, possessive)
        return node

    def _bounds(self):
        char = self._peek()
        if char == "*":
            self.at += 1
            return 0, _ENDLESS
        if char == "+":
            self.at += 1
            return 1, _ENDLESS
        if char == "?":
            self.at += 1
            return 0, 1
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        inside = self.text[self.at + 1 : end] if end > 0 else ""
        low, comma, high = inside.partition(",")
        if (not low and not comma) or (low and not low.isdigit()) or (high and not high.isdigit()):
            return None
        pos = self.at
        self.at = end + 1
        least = int(low or "0")
        most = (int(high) if high else _ENDLESS) if comma else least
        if most < least:
            raise self._error("min repeat greater than max repeat", pos + 1)
        return least, most

    def _item(self, flags):
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group(flags)
        if char == "[":
            return self._set(flags)
        if char == "\\":
            return self._escape(flags)
        if char == ".":
            return ("set", _anything if flags & S else _not_newline)
        if char == "^":
            return ("at", "line start" if flags & M else "start")
        if char == "$":
            return ("at", "line end" if flags & M else "end")
        if char in "*+?":
            raise self._error("nothing to repeat", self.at - 1)
        return literal(char, flags)

    def _escape(self, flags):
        if self.at >= len(self.text):
            raise self._error("bad escape (end of pattern)", self.at - 1)
        char = self.text[self.at]
        self.at += 1
        if char in "dDwWsS":
            return ("set", class_test(char))
        if char in "bBAZ":
            return ("at", char)
        if char in "123456789":
            number = char
            if self._peek() and self._peek() in "0123456789":
                number += self._peek()
                self.at += 1
            number = int(number)
            if number > self.groups:
                raise self._error("invalid group reference {}".format(number), self.at - 1)
            if number not in self._closed:
                raise self._error("cannot refer to an open group", self.at - 1)
            return ("back", number, flags & I)
        return literal(self._escaped(char), flags)

    def _escaped(self, char):
        if char in _ESCAPES:
            return _ESCAPES[char]
        size = {"x": 2, "u": 4, "U": 8}.get(char)
        if size:
            digits = self._peek(size)
            try:
                if len(digits) != size:
                    raise ValueError
                value = chr(int(digits, 16))
            except ValueError:
                raise self._error("incomplete escape \\{}{}".format(char, digits), self.at - 2)
            self.at += size
            return value
        if char == "0":
            digits = ""
            while len(digits) < 2 and self._peek() and self._peek() in "01234567":
                digits += self._peek()
                self.at += 1
            return chr(int(digits or "0", 8))
        if "a" <= char <= "z" or "A" <= char <= "Z":
            raise self._error("bad escape \\" + char, self.at - 2)
        return char

    def _set(self, flags):
        start = self.at - 1
        negate = self._take("^")
        singles, ranges, tests = set(), [], []
        first = True
        while True:
            char = self._peek()
            if not char:
                raise self._error("unterminated character set", start)
            self.at += 1
            if char == "]" and not first:
                break
            first = False
            low = self._set_part(char)
            if self._peek() == "-" and self._peek(2) not in ("-", "-]"):
                self.at += 1
                char = self._peek()
                self.at += 1
                high = self._set_part(char)
                if not isinstance(low, str) or not isinstance(high, str) or high < low:
                    raise self._error("bad character range", self.at - 3)
                ranges.append((low, high))
            elif isinstance(low, str):
                singles.add(low)
            else:
                tests.append(low)
        return ("set", _set_test(singles, ranges, tests, negate, flags & I))

    def _set_part(self, char):
        if char != "\\":
            return char
        char = self._peek()
        if not char:
            raise self._error("unterminated character set")
        self.at += 1
        if char in "dDwWsS":
            return class_test(char)
        if char == "b":
            return "\b"
        if char in "1234567":
            digits = char
            while len(digits) < 3 and self._peek() and self._peek() in "01234567":
                digits += self._peek()
                self.at += 1
            return chr(int(digits, 8))
        return self._escaped(char)

    def _group(self, flags):
        start = self.at - 1
        if not self._take("?"):
            return self._captured(None, flags, start)
        if self._take("P<"):
            name = self._name(">")
            if name in self.names:
                raise self._error("redefinition of group name {!r}".format(name), start)
            return self._captured(name, flags, start)
        if self._take("P="):
            name = self._name(")")
            if name not in self.names:
                raise self._error("unknown group name {!r}".format(name), start + 4)
            return ("back", self.names[name], flags & I)
        if self._take("#"):
            end = self.text.find(")", self.at)
            if end < 0:
                raise self._error("missing ), unterminated comment", start)
            self.at = end + 1
            return None
        if self._take(":"):
            return self._closing(self._alternatives(flags), start)
        if self._take(">"):
            return ("atomic", self._closing(self._alternatives(flags), start))
        for text, ahead, wanted in (("=", True, True), ("!", True, False), ("<=", False, True), ("<!", False, False)):
            if self._take(text):
                return ("look", self._closing(self._alternatives(flags), start), ahead, wanted)
        if self._take("("):
            return self._conditional(flags, start)
        return self._inline_flags(flags, start)

    def _name(self, end):
        at = self.text.find(end, self.at)
        name = self.text[self.at : at] if at >= 0 else ""
        if not name or name[0].isdigit() or not all([is_word(char) for char in name]):
            raise self._error("bad character in group name {!r}".format(name) if name else "missing group name")
        self.at = at + 1
        return name

    def _captured(self, name, flags, start):
        self.groups += 1
        number = self.groups
        if name is not None:
            self.names[name] = number
        node = self._closing(self._alternatives(flags), start)
        self._closed.add(number)
        return ("group", number, node)

    def _closing(self, node, start):
        if not self._take(")"):
            raise self._error("missing ), unterminated subpattern", start)
        return node

    def _conditional(self, flags, start):
        name = ""
        while self._peek() not in ("", ")"):
            name += self._peek()
            self.at += 1
        self.at += 1
        number = int(name) if name.isdigit() else self.names.get(name)
        if not number or number > self.groups:
            raise self._error("unknown group name {!r}".format(name), start)
        node = self._closing(self._alternatives(flags), start)
        yes, no = (node[1][0], node[1][1]) if node[0] == "alt" and len(node[1]) == 2 else (node, ("seq", []))
        return ("if", number, yes, no)

    def _inline_flags(self, flags, start):
        on = off = 0
        minus = False
        while self._peek() not in ("", ")", ":"):
            char = self._peek()
            self.at += 1
            if char == "-":
                minus = True
            elif char not in _LETTERS:
                raise self._error("unknown extension ?" + char, start + 1)
            elif minus:
                off |= _LETTERS[char]
            else:
                on |= _LETTERS[char]
        if self._take(")"):
            if start:
                raise self._error("global flags not at the start of the expression", start)
            return on
        if not self._take(":"):
            raise self._error("missing -, : or )")
        return self._closing(self._alternatives((flags | on) & ~off), start)


def literal(char, flags):
    if flags & I and char.lower() != char.upper():
        low, up = char.lower(), char.upper()
        return ("set", lambda found: found == low or found == up)
    return ("char", char)


def _anything(char):
    return True


def _not_newline(char):
    return char != "\n"


def _set_test(singles, ranges, tests, negate, ignore_case):
    if ignore_case:
        singles = singles | {char.lower() for char in singles} | {char.upper() for char in singles}

    def within(char):
        if char in singles:
            return True
        for low, high in ranges:
            if low <= char <= high:
                return True
        for test in tests:
            if test(char):
                return True
        return False

    def found(char):
        return within(char) or (ignore_case and bool(ranges) and (within(char.lower()) or within(char.upper())))

    test = (lambda char: char in singles) if not ranges and not tests else found if ignore_case else within
    return (lambda char: not test(char)) if negate else test


def width(node):
    """How many characters a node matches: the least and the most."""
    kind = node[0]
    if kind in ("char", "set"):
        return 1, 1
    if kind in ("look", "at"):
        return 0, 0
    if kind == "back":
        return 0, _ENDLESS
    if kind == "group":
        return width(node[2])
    if kind == "atomic":
        return width(node[1])
    if kind == "repeat":
        low, high = width(node[1])
        return low * node[2], min(high * node[3], _ENDLESS)
    parts = [width(part) for part in (node[1] if kind in ("seq", "alt") else node[2:])]
    lows, highs = [part[0] for part in parts], [part[1] for part in parts]
    if kind == "seq":
        return sum(lows), min(sum(highs), _ENDLESS)
    return min(lows), max(highs)
