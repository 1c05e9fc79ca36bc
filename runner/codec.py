"""
Deterministic CBOR: the only encoding that crosses the guest boundary.

Input: guest-controlled. `decode` accepts exactly the core deterministic encoding of RFC 8949
section 4.2.1, narrowed further: map keys are text, integers fit 64 bits, and there are no tags, no
indefinite lengths, no `undefined` and no other simple values. So one value has one encoding, and a
recorded request can be compared byte by byte.

`cbor2` does the work. What it can't bound is checked by a scan of the heads first, which stops at
`MAX_ITEMS`: a megabyte of one-byte items would otherwise become 64 MiB of Python objects.

A payload is met again and again: where a guest hands it over, in each record of it, and where it is used. So
short ones that have been checked are remembered for a while, and only the first look takes time.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import cbor2

Value: TypeAlias = Any
"""
What a payload decodes to: `None`, `bool`, `int`, `float`, `str`, `bytes`, `list`, `dict[str, ...]`.
"""

MAX_DEPTH = 64
"""
Containers inside containers; far below the recursion limit of any guest SDK we know.
"""

MAX_ITEMS = 65_536
"""
Data items in one payload, keys included; bounds a decode to some tens of milliseconds.
"""

_REMEMBERED_BYTES = 2048
_REMEMBERED = 2048

# Payloads that have passed `check`. Threads may add to it at once, and clear it: it is only a memo.
_sound: set[bytes] = set()

_INLINE = 24
_ARGUMENT_BYTES = {24: 1, 25: 2, 26: 4, 27: 8}
_SMALLEST_ARGUMENT = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}
_FALSE, _TRUE, _NULL, _HALF, _SINGLE, _DOUBLE = 20, 21, 22, 25, 26, 27
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)


class CodecError(ValueError):
    """
    Raised by `decode` when bytes are not a payload; `offset` is where the fault begins.
    """

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(f"{problem} at byte {offset}")
        self.problem = problem
        self.offset = offset


def encode(value: Value) -> bytes:
    """
    The one encoding of `value`.

    Raises:
        TypeError: If the value, or one inside it, is of no payload type, or text that UTF-8 can't say.
    """
    data = _dump(value)
    if data not in _sound:
        try:
            _scan(data)
        except CodecError as error:
            raise _no_value(error) from error
        _remember(data)
    return data


def encode_typed(value: Value) -> bytes:
    """
    The one encoding of a value that is of payload types all through, as its caller has made sure.

    Raises:
        TypeError: If it has more than `MAX_ITEMS` items, or text that UTF-8 can't say.
    """
    data = _dump(value)
    # An item takes a byte at least.
    if len(data) > MAX_ITEMS:
        try:
            _scan(data)
        except CodecError as error:
            raise _no_value(error) from error
    return data


def _dump(value: Value) -> bytes:
    try:
        return cbor2.dumps(value, canonical=True)
    except (cbor2.CBOREncodeError, UnicodeEncodeError) as error:
        raise _no_value(error) from error


def _no_value(error: Exception) -> TypeError:
    return TypeError(f"not a payload value: {error}")


def decode(data: bytes) -> Value:
    """
    The value that `data` encodes.

    Total: takes any bytes, allocates in proportion to their length.

    Raises:
        CodecError: If the bytes are not the deterministic encoding of one payload value.
    """
    if data in _sound:
        return cbor2.loads(data)
    _scan(data)
    try:
        value = cbor2.loads(data, max_depth=MAX_DEPTH + 1, allow_duplicate_keys=False)
    except cbor2.CBORDecodeError as error:
        raise CodecError(str(error), 0) from error
    if cbor2.dumps(value, canonical=True) != data:
        problem = "not the shortest or sorted encoding"
        raise CodecError(problem, 0)
    _remember(data)
    return value


def check(data: bytes) -> None:
    """
    See that `decode` would take these bytes.

    Raises:
        CodecError: If not.
    """
    if data not in _sound:
        decode(data)


def _remember(data: bytes) -> None:
    if len(data) <= _REMEMBERED_BYTES:
        if len(_sound) >= _REMEMBERED:
            _sound.clear()
        _sound.add(data)


def _scan(data: bytes) -> None:
    """
    Walk the heads without building anything; leave order, duplicates, floats and UTF-8 to `cbor2`.
    """
    size = len(data)
    position = 0
    items = 0
    # Items still owed by each open container; a map's also remembers that keys alternate.
    owed: list[int] = [1]
    keyed: list[bool] = [False]
    while owed:
        if not owed[-1]:
            owed.pop()
            keyed.pop()
            continue
        owed[-1] -= 1
        is_key = keyed[-1] and owed[-1] % 2 == 1
        start = position
        if position >= size:
            _fail("payload ends early", start)
        items += 1
        if items > MAX_ITEMS:
            _fail(f"more than {MAX_ITEMS} items", start)
        major, info = data[position] >> 5, data[position] & 0x1F
        position += 1
        argument, position = _argument(data, position, info, major, start)
        if is_key and major != _TEXT:
            _fail("map key is not text", start)
        if major in (_BYTES, _TEXT):
            position += argument
            if position > size:
                _fail("string ends early", start)
        elif major in (_ARRAY, _MAP):
            count = argument * 2 if major == _MAP else argument
            # Each item takes a byte at least, so a count beyond the rest is a lie.
            if count > size - position:
                _fail("container ends early", start)
            if len(owed) > MAX_DEPTH:
                _fail(f"deeper than {MAX_DEPTH}", start)
            owed.append(count)
            keyed.append(major == _MAP)
        elif major == _TAG:
            _fail("tags are not allowed", start)
    if position != size:
        _fail("trailing bytes", position)


def _argument(data: bytes, position: int, info: int, major: int, start: int) -> tuple[int, int]:
    """
    The head's argument and the position after it.
    """
    if major == _SIMPLE and info not in (_FALSE, _TRUE, _NULL, _HALF, _SINGLE, _DOUBLE):
        _fail("simple value is not allowed", start)
    if info < _INLINE:
        return info, position
    width = _ARGUMENT_BYTES.get(info)
    if width is None:
        _fail("indefinite or reserved length", start)
    end = position + width
    if end > len(data):
        _fail("payload ends early", start)
    argument = int.from_bytes(data[position:end], "big")
    if major != _SIMPLE and argument < _SMALLEST_ARGUMENT[info]:
        _fail("integer or length is not the shortest", start)
    return argument, end


def _fail(problem: str, offset: int) -> NoReturn:
    raise CodecError(problem, offset)
