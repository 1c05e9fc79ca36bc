"""
The primitive encodings of the WebAssembly binary format.

Input: hostile. Every read is checked against the end of its section, every count against a bound
before anything is built from it, and whatever is wrong becomes a `WasmFormatError`.
"""

from __future__ import annotations

from typing import Final

_U32_BYTES: Final = 5
_U32_MAX: Final = (1 << 32) - 1


class WasmFormatError(ValueError):
    """
    Raised for bytes that break the binary format, or use a part of it that this release can't read.

    Args:
        problem: What is wrong.
        offset: Where, in bytes from the start of the module.
    """

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(f"{problem} at byte {offset}")
        self.problem = problem
        self.offset = offset


class TooMany(WasmFormatError):
    """
    Raised for a count above its bound, before any of the items is read.

    Args:
        what: Where the items are, such as `import section`.
        count: How many the module says that it has.
        bound: How many are read.
        offset: Where the count ends.
    """

    def __init__(self, what: str, count: int, bound: int, offset: int) -> None:
        super().__init__(f"{count} items, and at most {bound} are admitted", offset)
        self.what = what


def printable(text: str, limit: int = 80) -> str:
    """
    Untrusted text made safe for one line of a message: what doesn't print is escaped, the rest cut.
    """
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[: limit + 1]
    )
    return safe if len(safe) <= limit else safe[:limit] + "…"


def unsigned(value: int) -> bytes:
    """
    `value` as the shortest unsigned LEB128.
    """
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits to a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def name_bytes(name: str) -> bytes:
    """
    `name` as the format writes it: its length, then UTF-8.
    """
    encoded = name.encode()
    return unsigned(len(encoded)) + encoded


class Reader:
    """
    A position in `data` that moves forward up to `end` and never past it.
    """

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end

    def byte(self) -> int:
        """
        The next byte.
        """
        if self.position >= self.end:
            raise WasmFormatError("the bytes end early", self.position)
        value = self.data[self.position]
        self.position += 1
        return value

    def u32(self) -> int:
        """
        The next unsigned LEB128 of at most 32 bits; the longer encodings that linkers leave are fine.
        """
        start = self.position
        value = 0
        for shift in range(0, 7 * _U32_BYTES, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the last byte has no high bit
                break
        else:
            raise WasmFormatError("an integer is longer than five bytes", start)
        if value > _U32_MAX:
            raise WasmFormatError("an integer is larger than 32 bits", start)
        return value

    def skip(self, size_bytes: int) -> int:
        """
        Pass over `size_bytes`; returns where they began.
        """
        start = self.position
        if size_bytes > self.end - start:
            raise WasmFormatError("a length reaches past its section", start)
        self.position = start + size_bytes
        return start

    def name(self) -> str:
        """
        The next name: a length and that much UTF-8.
        """
        size_bytes = self.u32()
        start = self.skip(size_bytes)
        try:
            return self.data[start : self.position].decode()
        except UnicodeDecodeError as error:
            raise WasmFormatError("a name is not UTF-8", start) from error

    def count(self, what: str, bound: int) -> int:
        """
        The length of the vector that follows; `what` names it in a refusal.
        """
        count = self.u32()
        if count > bound:
            raise TooMany(what, count, bound, self.position)
        return count

    def finish(self) -> None:
        """
        Make sure that nothing is left.
        """
        if self.position != self.end:
            raise WasmFormatError("bytes are left over at the end of a section", self.position)
