# From a tree of nodes to a program, and its run: backtracking, on a stack of its own and with a bound.

from _re_parse import _ENDLESS, error, is_word, width

(
    CHAR, SET, MATCH, JUMP, SPLIT, SAVE, AT, RUN, BACK, LOOK, ATOMIC, MARK, PROGRESS, CHOOSE,
) = range(14)  # fmt: skip

MAX_STEPS = 500_000
_MAX_PROGRAM = 20_000
_MAX_STACK = 400_000


class Compiler:
    """A program is a list of tuples; targets are places in it."""

    def __init__(self):
        self.code = []
        self.marks = 0

    def emit(self, *step):
        if len(self.code) >= _MAX_PROGRAM:
            raise error("pattern is too large")
        self.code.append(step)
        return len(self.code) - 1

    def add(self, node):
        getattr(self, "_" + node[0])(node)

    def _char(self, node):
        self.emit(CHAR, node[1])

    def _set(self, node):
        self.emit(SET, node[1])

    def _at(self, node):
        self.emit(AT, node[1])

    def _back(self, node):
        self.emit(BACK, node[1], node[2])

    def _seq(self, node):
        for part in node[1]:
            self.add(part)

    def _alt(self, node):
        ends = []
        for part in node[1][:-1]:
            split = self.emit(SPLIT)
            self.add(part)
            ends.append(self.emit(JUMP))
            self.code[split] = (SPLIT, split + 1, len(self.code))
        self.add(node[1][-1])
        for end in ends:
            self.code[end] = (JUMP, len(self.code))

    def _group(self, node):
        self.emit(SAVE, 2 * node[1])
        self.add(node[2])
        self.emit(SAVE, 2 * node[1] + 1)

    def _look(self, node):
        _, body, ahead, wanted = node
        size = 0
        if not ahead:
            size, most = width(body)
            if size != most:
                raise error("look-behind requires fixed-width pattern")
        self.emit(LOOK, program(body, self), size, wanted)

    def _atomic(self, node):
        self.emit(ATOMIC, program(node[1], self))

    def _if(self, node):
        choose = self.emit(CHOOSE)
        self.add(node[2])
        end = self.emit(JUMP)
        self.code[choose] = (CHOOSE, node[1], len(self.code))
        self.add(node[3])
        self.code[end] = (JUMP, len(self.code))

    def _repeat(self, node):
        _, body, least, most, greedy, possessive = node
        if possessive:
            self._atomic(("atomic", ("repeat", body, least, most, True, False)))
        elif body[0] in ("char", "set"):
            # The commonest: one kind of character, counted in one step.
            test = body[1]
            if body[0] == "char":
                test = (lambda wanted: lambda char: char == wanted)(test)
            self.emit(RUN, test, least, most, greedy)
        else:
            for _ in range(least):
                self.add(body)
            if most >= _ENDLESS:
                self._endless(body, greedy)
            else:
                self._optional(body, most - least, greedy)

    def _endless(self, body, greedy):
        # A turn that matches nothing ends the loop.
        mark = self.marks
        self.marks += 1
        split = self.emit(SPLIT)
        self.emit(MARK, mark)
        self.add(body)
        self.emit(PROGRESS, mark, split)
        self._point(split, greedy)

    def _optional(self, body, count, greedy):
        splits = []
        for _ in range(count):
            splits.append(self.emit(SPLIT))
            self.add(body)
        for split in splits:
            self._point(split, greedy)

    def _point(self, split, greedy):
        inside, after = split + 1, len(self.code)
        self.code[split] = (SPLIT, inside, after) if greedy else (SPLIT, after, inside)


def program(node, parent=None):
    compiler = Compiler()
    if parent is not None:
        compiler.marks = parent.marks
    compiler.add(node)
    compiler.emit(MATCH)
    if parent is not None:
        parent.marks = compiler.marks
    return compiler.code


def _holds(kind, text, at, end):
    if kind == "start" or kind == "A":
        return at == 0
    if kind == "Z":
        return at == end
    if kind == "end":
        return at == end or (at == end - 1 and text[at] == "\n")
    if kind == "line start":
        return at == 0 or text[at - 1] == "\n"
    if kind == "line end":
        return at == end or text[at] == "\n"
    before = at > 0 and is_word(text[at - 1])
    after = at < end and is_word(text[at])
    return (before != after) == (kind == "b")


class Runner:
    """Runs programs over one text; all runs of one search share the bound."""

    def __init__(self, text, end, groups, marks):
        self.source = text
        # A place in the engine's text is found by counting from its beginning; in a list, at once.
        self.text = list(text)
        self.end = end
        self._size = 2 * groups + 2
        self._marks = marks
        self.steps = MAX_STEPS

    def fresh(self):
        return [-1] * (self._size + self._marks)

    def run(self, code, at, saved, whole=False, least_end=-1):
        """The end of a match that begins here and ends at `least_end` or later, or -1; what it captured is in `saved`."""
        text, end, first_mark = self.text, self.end, self._size
        # Choices: (place, position). Undone on the way back: (-1 - slot, old value). More of a run: see `_several`.
        stack = []
        push = stack.append
        place = 0
        steps = self.steps
        while True:
            steps -= 1
            if steps < 0 or len(stack) > _MAX_STACK:
                raise RuntimeError("regular expression takes too many steps")
            step = code[place]
            kind = step[0]
            failed = False
            if kind == CHAR:
                if at < end and text[at] == step[1]:
                    at += 1
                    place += 1
                else:
                    failed = True
            elif kind == SET:
                if at < end and step[1](text[at]):
                    at += 1
                    place += 1
                else:
                    failed = True
            elif kind == RUN:
                found = self._several(step, at, place + 1, push)
                if found < 0:
                    failed = True
                else:
                    steps -= found - at >> 2
                    at = found
                    place += 1
            elif kind == SPLIT:
                push((step[2], at))
                place = step[1]
            elif kind == JUMP:
                place = step[1]
            elif kind == SAVE:
                slot = step[1]
                push((-1 - slot, saved[slot]))
                saved[slot] = at
                place += 1
            elif kind == MATCH:
                if at >= least_end and (not whole or at == end):
                    self.steps = steps
                    return at
                failed = True
            elif kind == AT:
                if _holds(step[1], text, at, end):
                    place += 1
                else:
                    failed = True
            elif kind == MARK:
                slot = first_mark + step[1]
                push((-1 - slot, saved[slot]))
                saved[slot] = at
                place += 1
            elif kind == PROGRESS:
                place = step[2] if saved[first_mark + step[1]] != at else place + 1
            elif kind == CHOOSE:
                place = place + 1 if saved[2 * step[1] + 1] >= 0 else step[2]
            else:
                self.steps = steps
                found = self._part(step, at, saved, push)
                steps = self.steps
                if found < 0:
                    failed = True
                else:
                    at = found
                    place += 1
            if failed:
                back = self._back(stack, saved)
                if back is None:
                    self.steps = steps
                    return -1
                place, at = back

    def _several(self, step, at, after, push):
        """As many characters of one kind as may be (or, not greedy, as must be): where they end, or -1."""
        _, test, least, most, greedy = step
        text, end, stop = self.text, self.end, at
        if greedy:
            limit = end if most > end - at else at + most
            while stop < limit and test(text[stop]):
                stop += 1
            if stop - at < least:
                return -1
            if stop > at + least:
                push((after, stop - 1, at + least))
            return stop
        limit = at + least
        while stop < limit and stop < end and test(text[stop]):
            stop += 1
        if stop < limit:
            return -1
        if most > least:
            push((after, stop, at + most, test))
        return stop

    def _back(self, stack, saved):
        """Undo what was done since the last choice, and take the other way: its place and position, or `None`."""
        while stack:
            back = stack.pop()
            if back[0] < 0:
                saved[-1 - back[0]] = back[1]
                continue
            place, at = back[0], back[1]
            if len(back) == 3:
                if at > back[2]:
                    stack.append((place, at - 1, back[2]))
            elif len(back) == 4:
                # One more, if there is one.
                if at >= self.end or at >= back[2] or not back[3](self.text[at]):
                    continue
                at += 1
                stack.append((place, at, back[2], back[3]))
            return place, at
        return None

    def _part(self, step, at, saved, push):
        """A back reference, a look around or an atomic group: where it ends, or -1."""
        if step[0] == BACK:
            start, stop = saved[2 * step[1]], saved[2 * step[1] + 1]
            if start < 0 or stop < 0:
                return -1
            wanted, found = "".join(self.text[start:stop]), "".join(self.text[at : at + stop - start])
            same = found.lower() == wanted.lower() if step[2] else found == wanted
            return at + len(wanted) if same and at + len(wanted) <= self.end else -1
        inner = saved[:]
        if step[0] == LOOK:
            start = at - step[2]
            found = self.run(step[1], start, inner) if start >= 0 else -1
            if (found >= 0) != step[3]:
                return -1
            stop = at
        else:
            stop = found = self.run(step[1], at, inner)
        if found >= 0:
            for slot, value in enumerate(inner):
                if saved[slot] != value:
                    push((-1 - slot, saved[slot]))
                    saved[slot] = value
        return stop
