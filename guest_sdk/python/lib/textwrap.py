# Paragraphs.


def dedent(text):
    lines = text.split("\n")
    margin = None
    for index, line in enumerate(lines):
        if not line.strip():
            lines[index] = ""
            continue
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if margin is None:
            margin = indent
        else:
            same = 0
            while same < min(len(margin), len(indent)) and margin[same] == indent[same]:
                same += 1
            margin = margin[:same]
    size = len(margin or "")
    return "\n".join([line[size:] for line in lines])


def indent(text, prefix, predicate=None):
    keep = predicate or (lambda line: bool(line.strip()))
    return "".join([prefix + line if keep(line) else line for line in text.splitlines(True)])


class TextWrapper:
    def __init__(
        self, width=70, initial_indent="", subsequent_indent="", expand_tabs=True, replace_whitespace=True,
        fix_sentence_endings=False, break_long_words=True, drop_whitespace=True, break_on_hyphens=True, tabsize=8, *,
        max_lines=None, placeholder=" [...]"
    ):  # fmt: skip
        self.width = width
        self.initial_indent = initial_indent
        self.subsequent_indent = subsequent_indent
        self.expand_tabs = expand_tabs
        self.replace_whitespace = replace_whitespace
        self.break_long_words = break_long_words
        self.drop_whitespace = drop_whitespace
        self.break_on_hyphens = break_on_hyphens
        self.tabsize = tabsize
        self.max_lines = max_lines
        self.placeholder = placeholder

    def wrap(self, text):
        if self.width <= 0:
            raise ValueError("invalid width {!r} (must be > 0)".format(self.width))
        if self.expand_tabs:
            text = text.expandtabs(self.tabsize)
        if self.replace_whitespace:
            text = "".join([" " if char in "\t\n\v\f\r" else char for char in text])
        chunks = self._chunks(text)
        chunks.reverse()
        lines = []
        while chunks:
            line, size = [], 0
            indent = self.subsequent_indent if lines else self.initial_indent
            room = self.width - len(indent)
            if self.drop_whitespace and lines and not chunks[-1].strip():
                chunks.pop()
            while chunks and size + len(chunks[-1]) <= room:
                size += len(chunks[-1])
                line.append(chunks.pop())
            if chunks and len(chunks[-1]) > room:
                self._break(chunks, line, size, room)
            size = sum([len(chunk) for chunk in line])
            if self.drop_whitespace and line and not line[-1].strip():
                size -= len(line.pop())
            if not line:
                continue
            left = [chunk for chunk in chunks if chunk.strip()] if self.drop_whitespace else chunks
            if self.max_lines is None or len(lines) + 1 < self.max_lines or (not left and size <= room):
                lines.append(indent + "".join(line))
                continue
            lines.append(self._cut(line, size, room, indent, lines))
            break
        return lines

    def _cut(self, line, size, room, indent, lines):
        while line:
            if line[-1].strip() and size + len(self.placeholder) <= room:
                return indent + "".join(line) + self.placeholder
            size -= len(line.pop())
        if lines:
            last = lines[-1].rstrip()
            if len(last) + len(self.placeholder) <= self.width:
                lines.pop()
                return last + self.placeholder
        return indent + self.placeholder.lstrip()

    def _break(self, chunks, line, size, room):
        space = max(1, room - size)
        if self.break_long_words:
            line.append(chunks[-1][:space])
            chunks[-1] = chunks[-1][space:]
        elif not line:
            line.append(chunks.pop())

    def _chunks(self, text):
        chunks = []
        at = 0
        while at < len(text):
            end = at
            if text[at] == " ":
                while end < len(text) and text[end] == " ":
                    end += 1
                chunks.append(text[at:end])
            else:
                while end < len(text) and text[end] != " ":
                    end += 1
                chunks.extend(self._parts(text[at:end]))
            at = end
        return chunks

    def _parts(self, word):
        if not self.break_on_hyphens:
            return [word]
        parts = []
        start = 0
        for index in range(1, len(word) - 1):
            if word[index] == "-" and word[index - 1].isalpha() and word[index + 1].isalpha() and index - start > 1:
                parts.append(word[start : index + 1])
                start = index + 1
        parts.append(word[start:])
        return parts

    def fill(self, text):
        return "\n".join(self.wrap(text))


def wrap(text, width=70, **options):
    return TextWrapper(width, **options).wrap(text)


def fill(text, width=70, **options):
    return TextWrapper(width, **options).fill(text)


def shorten(text, width, **options):
    return TextWrapper(width, max_lines=1, **options).fill(" ".join(text.strip().split()))
