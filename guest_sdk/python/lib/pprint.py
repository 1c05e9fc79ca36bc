# Values over several lines.


def pformat(object, indent=1, width=80, depth=None, *, compact=False, sort_dicts=True, underscore_numbers=False):
    return _Printer(indent, width, depth, sort_dicts).shown(object, 0, 0, 0)


def pprint(object, stream=None, indent=1, width=80, depth=None, *, compact=False, sort_dicts=True,
           underscore_numbers=False):  # fmt: skip
    text = pformat(object, indent, width, depth, sort_dicts=sort_dicts)
    if stream is None:
        print(text)
    else:
        stream.write(text + "\n")


def pp(object, *args, sort_dicts=False, **options):
    pprint(object, *args, sort_dicts=sort_dicts, **options)


def saferepr(object):
    return _Printer(1, 80, None, True).flat(object, 0)


class PrettyPrinter:
    def __init__(self, indent=1, width=80, depth=None, stream=None, *, compact=False, sort_dicts=True, **options):
        self._options = (indent, width, depth)
        self._sort = sort_dicts
        self._stream = stream

    def pformat(self, object):
        return pformat(object, *self._options, sort_dicts=self._sort)

    def pprint(self, object):
        pprint(object, self._stream, *self._options, sort_dicts=self._sort)


def _order(pair):
    key = pair[0]
    return (type(key).__name__ if not isinstance(key, (int, float)) else "", key)


class _Printer:
    def __init__(self, indent, width, depth, sort):
        self._indent = indent
        self._width = width
        self._depth = depth
        self._sort = sort

    def _items(self, value):
        items = list(value.items())
        if self._sort:
            try:
                items.sort(key=_order)
            except TypeError:
                items.sort(key=lambda pair: (type(pair[0]).__name__, str(pair[0])))
        return items

    def flat(self, value, level):
        kind = type(value)
        if kind not in (dict, list, tuple, set, frozenset) or not len(value):
            return repr(value)
        if self._depth is not None and level >= self._depth:
            return {dict: "{...}", list: "[...]", tuple: "(...)"}.get(kind, "{...}")
        level += 1
        if kind is dict:
            pairs = ["{}: {}".format(self.flat(k, level), self.flat(v, level)) for k, v in self._items(value)]
            return "{" + ", ".join(pairs) + "}"
        left, right = _BRACKETS[kind]
        values = sorted(value, key=lambda one: _order((one,))) if kind in (set, frozenset) else value
        inside = ", ".join([self.flat(one, level) for one in values])
        return left + inside + ("," if kind is tuple and len(value) == 1 else "") + right

    def shown(self, value, column, after, level):
        """The text of a value that begins at a column, with so many characters still to come behind it."""
        flat = self.flat(value, level)
        kind = type(value)
        if column + len(flat) + after <= self._width or kind not in (dict, list, tuple, set, frozenset):
            return flat
        if not len(value) or (self._depth is not None and level >= self._depth):
            return flat
        left, right = _BRACKETS[kind]
        pad = max(self._indent - len(left), 0)
        inner = column + len(left) + pad
        parts = []
        values = self._items(value) if kind is dict else list(value)
        for index, one in enumerate(values):
            rest = 1 if index < len(values) - 1 else after + len(right)
            if kind is dict:
                key = self.flat(one[0], level + 1) + ": "
                parts.append(key + self.shown(one[1], inner + len(key), rest, level + 1))
            else:
                parts.append(self.shown(one, inner, rest, level + 1))
        end = "," if kind is tuple and len(value) == 1 else ""
        return left + " " * pad + (",\n" + " " * inner).join(parts) + end + right


_BRACKETS = {dict: "{}", list: "[]", tuple: "()", set: "{}", frozenset: ("frozenset({", "})")}
