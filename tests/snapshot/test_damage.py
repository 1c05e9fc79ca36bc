"""
Whatever is done to a snapshot's bytes, `decode` refuses it with a typed error and nothing else.
"""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.digest import digest
from runner.errors import SnapshotCorrupt, SnapshotIncompatible
from runner.snapshot import Snapshot, decode, encode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Change = Callable[[dict[str, Any]], None]
MAX_COUNT = (1 << 63) - 1
NEWER = "use the runner that wrote it, or a later one"


def refusal(data: bytes) -> str:
    """
    The message with which the bytes are refused; any other outcome fails the test.
    """
    with pytest.raises((SnapshotCorrupt, SnapshotIncompatible)) as caught:
        decode(data)
    return caught.value.message.removeprefix("snapshot is damaged: ")


def test_a_flipped_bit_is_found_wherever_it_is(sample: Snapshot) -> None:
    """
    One bit of each byte, thousands of files; the root sees what no other check does.
    """
    data = encode(sample)
    chance = random.Random(7)
    messages = set()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << chance.randrange(8)
        messages.add(refusal(bytes(damaged)).partition(":")[0])
    assert messages == {"magic", "snapshot does not fit", "length", "root"}


def test_a_file_cut_short_is_found_wherever_it_was_cut(sample: Snapshot) -> None:
    """
    Every shorter length, nothing at all included.
    """
    data = encode(sample)
    messages = {refusal(data[:length]).partition(":")[0] for length in range(len(data))}
    assert messages == {"magic", "length"}


def test_bytes_that_follow_are_found(sample: Snapshot) -> None:
    """
    A snapshot ends where it says, even when what follows is another one.
    """
    data = encode(sample)
    for tail in (b"\0", b"\n", bytes(4096), data):
        assert refusal(data + tail) == f"length: {len(data) + len(tail)} bytes, expected {len(data)}"


def splices(first: bytes, second: bytes) -> Iterator[bytes]:
    """
    The beginning of one file and the end of the other, cut at many places.
    """
    for cut in range(1, min(len(first), len(second)), 16):
        yield first[:cut] + second[cut:]
        yield first[:cut] + second[-(len(first) - cut) :]


def test_two_snapshots_spliced_are_neither(sample: Snapshot, forge: Callable[..., bytes]) -> None:
    """
    Parts of two sound files make no sound file.
    """
    first = encode(sample)
    second = forge(change_top("position", 13))
    for left, right in ((first, second), (second, first)):
        for spliced in splices(left, right):
            if spliced not in (first, second):
                refusal(spliced)


def test_line_ends_changed_by_a_text_mode_copy_are_named(sample: Snapshot) -> None:
    """
    The commonest accident gets its own words.
    """
    data = encode(sample)
    for damaged in (data.replace(b"\r\n", b"\n"), data.replace(b"\n", b"\r\n")):
        assert refusal(damaged) == "magic: line ends were changed, as by a copy in text mode"
    assert refusal(b"\0asm\1\0\0\0" + data[8:]) == "magic: not a snapshot"
    assert refusal(b"") == "magic: not a snapshot"


@pytest.mark.parametrize(("version", "hint"), [(3, NEWER), (0xFFFFFFFF, NEWER), (0, None)])
def test_another_version_is_refused_with_both_numbers(
    sample: Snapshot, reroot: Callable[[bytes], bytes], version: int, hint: str | None
) -> None:
    """
    Newer, and never released; nothing else of the file is looked at.
    """
    data = encode(sample)
    other = data[:8] + version.to_bytes(4, "big") + data[12:]
    for changed in (other, reroot(other), other[:12]):
        with pytest.raises(SnapshotIncompatible) as caught:
            decode(changed)
        message = f"snapshot does not fit: format_version is {version}, expected 1 or 2"
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_file_of_the_first_version_has_no_key_of_the_second(
    sample: Snapshot, reroot: Callable[[bytes], bytes]
) -> None:
    """
    Each version is a closed set of its own.
    """
    first = encode(replace(sample, state=replace(sample.state, last_snapshot=None)))
    second = encode(sample)
    assert (first[11], second[11]) == (1, 2)
    assert (
        refusal(reroot(second[:11] + b"\1" + second[12:]))
        == "header: key 'last_snapshot' of state is unknown"
    )
    assert (
        refusal(reroot(first[:11] + b"\2" + first[12:])) == "header: key 'last_snapshot' of state is missing"
    )


def test_lengths_that_lie_allocate_nothing(sample: Snapshot, reroot: Callable[[bytes], bytes]) -> None:
    """
    A length is compared with the file before anything is done with it.
    """
    data = encode(sample)
    lies = [
        data[:12] + struct.pack(">IQ", header_bytes, body_bytes) + data[24:]
        for header_bytes in (0, 1, 0x4000000, 0x4000001, 0xFFFFFFFF)
        for body_bytes in (0, 1 << 32, (1 << 64) - 1)
    ]
    tracemalloc.start()
    for lie in lies:
        assert refusal(lie).startswith("length: ")
        assert refusal(reroot(lie)).startswith("length: ")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 256 * 1024


def change_top(key: str, value: Any) -> Change:
    """
    Put another value into the header.
    """
    return lambda header: header.update({key: value})


def change_state(key: str, value: Any) -> Change:
    """
    Put another value into the state.
    """
    return lambda header: header["state"].update({key: value})


def change_mind(key: str, value: Any) -> Change:
    """
    Put another value into the mind.
    """
    return lambda header: header["state"]["mind"].update({key: value})


def change_delivery(key: str, value: Any) -> Change:
    """
    Put another value into the open delivery.
    """
    return lambda header: header["state"]["delivery"].update({key: value})


def change_call(key: str, value: Any) -> Change:
    """
    Put another value into the second call in flight.
    """
    return lambda header: header["state"]["calls"][1].update({key: value})


def change_answer(key: str, value: Any) -> Change:
    """
    Put another value into the first answer of the open delivery.
    """
    return lambda header: header["state"]["delivery"]["answers"][0].update({key: value})


def repeated(key: str) -> Change:
    """
    Have the first item of a list in the state twice.
    """
    return lambda header: header["state"][key].append(header["state"][key][0])


def packed(*numbers: int) -> bytes:
    """
    A packed list.
    """
    return struct.pack(f">{len(numbers)}I", *numbers)


NOT_THE_SHORTEST = b"\xa1\x61a\x18\x01"
ESCAPES = "\x1b[31m" * 99
SHOWN = ESCAPES[:64]
TOO_DEEP = b"\x81" * 70 + b"\xf6"

FORGED: list[tuple[Change, str]] = [
    (lambda header: header.pop("agent"), "header: key 'agent' is missing"),
    (change_top("future", 1), "header: key 'future' is unknown"),
    (change_top(ESCAPES, 1), f"header: key {SHOWN!r} is unknown"),
    (change_state("future", 1), "header: key 'future' of state is unknown"),
    (lambda header: header["state"].pop("mind"), "header: key 'mind' of state is missing"),
    (change_mind("future", 1), "header: key 'future' of state.mind is unknown"),
    (change_call("future", 1), "header: key 'future' of state.calls is unknown"),
    (change_delivery("future", 1), "header: key 'future' of state.delivery is unknown"),
    (change_answer("future", 1), "header: key 'future' of state.delivery.answers is unknown"),
    (change_state("restored", {}), "header: key 'at_ms' of state.restored is missing"),
    (change_state("last_snapshot", {}), "header: key 'at_ms' of state.last_snapshot is missing"),
    (lambda header: header["state"].pop("last_snapshot"), "header: key 'last_snapshot' of state is missing"),
    (
        lambda header: header["state"]["last_snapshot"].update(ok=0),
        "header: state.last_snapshot.ok is int, not bool",
    ),
    (
        lambda header: header["state"]["last_snapshot"].update(error=7),
        "header: state.last_snapshot.error is int, not str",
    ),
    (
        lambda header: header["state"]["last_snapshot"].update(error="x" * 257),
        "state: last_snapshot.error 257 is not between 0 and 256",
    ),
    (
        lambda header: header["state"]["last_snapshot"].update(bytes=-1),
        f"state: last_snapshot.bytes -1 is not between 0 and {MAX_COUNT}",
    ),
    (
        lambda header: header["state"]["last_snapshot"].update(at_ms=-1),
        f"state: last_snapshot.at_ms -1 is not between 0 and {MAX_COUNT}",
    ),
    (change_top("state", []), "header: state is not a map"),
    (change_state("mind", None), "header: state.mind is not a map"),
    (change_state("calls", [None]), "header: state.calls is not a map"),
    (change_state("delivery", False), "header: state.delivery is not a map"),
    (change_top("abi_version", "1"), "header: abi_version is str, not int"),
    (change_top("agent", b"hello"), "header: agent is bytes, not str"),
    (change_top("position", True), "header: position is bool, not int"),
    (change_top("position", 1.0), "header: position is float, not int"),
    (change_top("code_digest", "c" * 32), "header: code_digest is str, not bytes"),
    (change_top("imports", {}), "header: imports is dict, not list"),
    (change_top("imports", [1]), "header: imports is not text"),
    (change_top("limits", []), "header: limits is list, not dict"),
    (change_top("limits", {"fuel": 0}), "header: limit fuel must be a positive integer, got 0"),
    (change_top("limits", {"fuel": True}), "header: limit fuel must be a positive integer, got True"),
    (
        change_top("limits", {"fuel": MAX_COUNT + 1}),
        "header: limit fuel must be a positive integer, got 9223372036854775808",
    ),
    (change_top("host", {}), "header: host is dict, not bytes"),
    (change_top("host", b""), "header: host: payload ends early at byte 0"),
    (change_top("host", b"\x80"), "header: host is not a map"),
    (change_top("host", NOT_THE_SHORTEST), "header: host: integer or length is not the shortest at byte 3"),
    (change_top("host", TOO_DEEP), "header: host: deeper than 64 at byte 64"),
    (change_state("calls", 0), "header: state.calls is int, not list"),
    (change_state("entropy", None), "header: state.entropy is NoneType, not bytes"),
    (change_mind("globals", [None]), "header: a global is neither an integer nor 8 bytes"),
    (change_mind("globals", [True]), "header: a global is neither an integer nor 8 bytes"),
    (change_mind("globals", [1.5]), "header: a global is neither an integer nor 8 bytes"),
    (change_mind("globals", [b"1234567"]), "header: a global is neither an integer nor 8 bytes"),
    (change_call("operation", 1), "header: state.calls.operation is int, not str"),
    (change_top("pages", bytes(31)), "pages: digests end early"),
    (lambda header: header.update(pages=header["pages"][:32] * 3), "pages: a content is stored twice"),
    (
        lambda header: header.update(pages=header["pages"][:64] + digest(bytes(4096))),
        "pages: the page of zeros is stored",
    ),
    (
        lambda header: header.update(pages=header["pages"] + bytes(32)),
        "pages: 4 contents are stored, 3 are used",
    ),
    (lambda header: header.update(pages=header["pages"][:64]), "pages: 2 contents are stored, 3 are used"),
    (
        lambda header: header.update(pages=header["pages"][:64] + bytes(32)),
        "body: content 3 does not have its digest",
    ),
    (
        lambda header: header.update(
            pages=header["pages"][32:64] + header["pages"][:32] + header["pages"][64:]
        ),
        "body: content 1 does not have its digest",
    ),
    (change_mind("indices", b"\0"), "pages: a list of pages ends early"),
    (change_mind("contents", b"\0" * 15), "pages: a list of pages ends early"),
    (change_mind("indices", packed(0, 3, 5)), "pages: not as many contents as indices"),
    (change_mind("indices", packed(3, 0, 5, 47)), "pages: indices do not ascend"),
    (change_mind("indices", packed(0, 3, 3, 47)), "pages: indices do not ascend"),
    (change_mind("indices", packed(0, 3, 5, 48)), "pages: index 48 is outside 196608 bytes"),
    (change_mind("indices", packed(0, 3, 5, 0xFFFFFFFF)), "pages: index 4294967295 is outside 196608 bytes"),
    (change_mind("contents", packed(1, 0, 3, 1)), "pages: contents are not in order of first appearance"),
    (change_mind("contents", packed(2, 0, 1, 2)), "pages: contents are not in order of first appearance"),
    (
        change_mind("contents", packed(1, 0, 0xFFFFFFFF, 1)),
        "pages: contents are not in order of first appearance",
    ),
    (change_mind("memory_bytes", 196609), "state: memory_bytes 196609 is not a multiple of 65536"),
    (
        change_mind("memory_bytes", (1 << 32) + 65536),
        "state: memory_bytes 4295032832 is not between 0 and 4294967296",
    ),
    (change_mind("memory_bytes", -65536), "state: memory_bytes -65536 is not between 0 and 4294967296"),
    (change_mind("memory_bytes", 65536), "pages: index 47 is outside 65536 bytes"),
    (
        lambda header: header["state"]["delivery"]["before"].update(memory_bytes=262144),
        "state: delivery.before.memory_bytes is more than after it; memory never shrinks",
    ),
    (
        change_mind("globals", [1, 2]),
        "state: delivery.before.globals are not of the types that mind.globals have",
    ),
    (
        change_mind("globals", [1, 2, 3]),
        "state: delivery.before.globals are not of the types that mind.globals have",
    ),
    (
        change_mind("globals", [1, MAX_COUNT + 1, bytes(8)]),
        f"state: mind.globals {MAX_COUNT + 1} is not between {-(1 << 63)} and {MAX_COUNT}",
    ),
    (change_top("code_digest", bytes(31)), "state: code_digest is not 32 bytes"),
    (change_top("image_digest", bytes(33)), "state: image_digest is not 32 bytes"),
    (change_top("memory_digest", b""), "state: memory_digest is not 32 bytes"),
    (change_top("position", -1), f"state: position -1 is not between 0 and {MAX_COUNT}"),
    (
        change_top("created_at_ms", MAX_COUNT + 1),
        f"state: created_at_ms {MAX_COUNT + 1} is not between 0 and {MAX_COUNT}",
    ),
    (change_state("entropy", bytes(16)), "state: entropy is not 32 bytes"),
    (change_state("entropy_used", -1), f"state: entropy_used -1 is not between 0 and {MAX_COUNT}"),
    (change_state("next_call", 0), "state: next_call 0 is not between 1 and 2147483648"),
    (change_state("next_call", (1 << 31) + 1), "state: next_call 2147483649 is not between 1 and 2147483648"),
    (change_state("next_call", 4), "state: calls number 4 is not between 2 and 3"),
    (
        change_state("last_delivery", 1 << 31),
        "state: last_delivery 2147483648 is not between 0 and 2147483647",
    ),
    (change_state("last_delivery", 2), "state: calls delivery 3 is not between 0 and 2"),
    (repeated("calls"), "state: calls number 1 is not between 5 and 4"),
    (lambda header: header["state"]["calls"].reverse(), "state: calls number 1 is not between 5 and 4"),
    (change_state("calls", []), "state: a delivery is open with no call in flight"),
    (change_call("number", 0), "state: calls number 0 is not between 2 and 4"),
    (change_call("delivery", 4), "state: calls delivery 4 is not between 0 and 3"),
    (
        change_call("request", b"\xff"),
        "state: request of call 4 in calls: simple value is not allowed at byte 0",
    ),
    (change_call("request", b""), "state: request of call 4 in calls: payload ends early at byte 0"),
    (change_delivery("number", 0), "state: delivery.number 0 is not between 1 and 3"),
    (change_delivery("number", 4), "state: delivery.number 4 is not between 1 and 3"),
    (change_delivery("fuel", -1), f"state: delivery.fuel -1 is not between 0 and {MAX_COUNT}"),
    (
        change_delivery("calls_before", []),
        "state: an answer in delivery.answers is to call 1, which is not in calls_before",
    ),
    (
        change_answer("call", 4),
        "state: an answer in delivery.answers is to call 4, which is not in calls_before",
    ),
    (change_answer("status", 99), "state: answer to call 1 has status 99"),
    (change_answer("payload", b"\xc0\x00"), "state: answer to call 1: tags are not allowed at byte 0"),
    (
        lambda header: header["state"]["restored"].update(generation=0),
        f"state: restored.generation 0 is not between 1 and {MAX_COUNT}",
    ),
    (
        lambda header: header["state"]["restored"].update(count=-1),
        f"state: restored.count -1 is not between 0 and {MAX_COUNT}",
    ),
    (change_top("abi_version", 2), "snapshot does not fit: abi_version is 2, expected 1"),
    (
        change_top("imports", ["llm.sing"]),
        "snapshot does not fit: an operation is 'llm.sing', expected one of ABI version 1",
    ),
    (
        change_call("operation", "wasi.\x1b[0m"),
        "snapshot does not fit: an operation is 'wasi.\\x1b[0m', expected one of ABI version 1",
    ),
    (
        change_top("limits", {"fun": 1}),
        "snapshot does not fit: a limit is 'fun', expected one this runner has",
    ),
]


@pytest.mark.parametrize(("change", "message"), FORGED, ids=[str(number) for number in range(len(FORGED))])
def test_a_forged_header_is_refused_though_its_root_holds(
    forge: Callable[..., bytes], change: Change, message: str
) -> None:
    """
    A root can be computed by anyone; what it covers is checked all the same.
    """
    assert refusal(forge(change)) == message


def raw_header(sample: Snapshot, header: bytes, reroot: Callable[[bytes], bytes]) -> bytes:
    """
    The sample with those bytes for a header.
    """
    data = encode(sample)
    body = data[56 + int.from_bytes(data[12:16], "big") :]
    return reroot(data[:12] + struct.pack(">I", len(header)) + data[16:56] + header + body)


def test_a_header_that_is_not_the_one_encoding_of_a_map_is_refused(
    sample: Snapshot, reroot: Callable[[bytes], bytes]
) -> None:
    """
    Empty, no map, not the shortest form, keys unsorted, too deep, too many items.
    """
    expected = {
        b"": "header: payload ends early at byte 0",
        b"\x01": "header: not a map",
        NOT_THE_SHORTEST: "header: integer or length is not the shortest at byte 3",
        b"\xa2\x61b\x01\x61a\x01": "header: not the shortest or sorted encoding at byte 0",
        TOO_DEEP: "header: deeper than 64 at byte 64",
        b"\x9a\x00\x01\x00\x00" + bytes(65536): "header: more than 65536 items at byte 65540",
    }
    assert {header: refusal(raw_header(sample, header, reroot)) for header in expected} == expected


def test_a_body_that_is_not_the_promised_pages_is_refused(
    forge: Callable[..., bytes], sample: Snapshot
) -> None:
    """
    Nothing, noise, too little, too much, two frames, other contents, a frame without its size.
    """
    data = encode(sample)
    body = data[56 + int.from_bytes(data[12:16], "big") :]
    pages = zstd.decompress(body)
    nameless = zstd.compress(pages, options={zstd.CompressionParameter.content_size_flag: 0})
    checked = zstd.compress(pages, options={zstd.CompressionParameter.checksum_flag: 1})
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0skip" + body
    expected = {
        pages[:-4096]: "body: the frame names 8192 bytes, the table 12288",
        pages + bytes(1): "body: the frame names 12289 bytes, the table 12288",
        pages + pages: "body: the frame names 24576 bytes, the table 12288",
        bytes(12288): "body: content 1 does not have its digest",
        pages[:-1] + b"?": "body: content 3 does not have its digest",
    }
    assert {bad: refusal(forge(lambda _: None, zstd.compress(bad))) for bad in expected} == expected
    assert refusal(forge(lambda _: None, nameless)) == "body: the frame names None bytes, the table 12288"
    assert refusal(forge(lambda _: None, body + body)) == "body: bytes follow the frame"
    assert refusal(forge(lambda _: None, body + b"\0")) == "body: bytes follow the frame"
    for bad in (b"", pages, body[:-1], body[:4], body[1:], skipped):
        assert refusal(forge(lambda _: None, bad)).startswith("body: ")
    unended = "body: the frame does not end after its last page"
    assert refusal(forge(lambda _: None, checked[:-2])) == unended
    assert refusal(forge(lambda _: None, checked[:-1] + b"?")).startswith("body: not a zstd frame: ")
    assert decode(forge(lambda _: None, checked)) is not None


def drop_pages(header: dict[str, Any]) -> None:
    """
    A header that promises no contents.
    """
    header["pages"] = b""
    header["state"]["delivery"] = None
    header["state"]["mind"].update(indices=b"", contents=b"")


def test_a_body_where_none_was_promised_is_refused(forge: Callable[..., bytes]) -> None:
    """
    Not even an empty frame.
    """
    for body in (b"\0", zstd.compress(b"")):
        assert refusal(forge(drop_pages, body)) == "body: without pages there is none"
    assert decode(forge(drop_pages, b"")) is not None


def test_a_bomb_is_refused_before_it_unfolds(forge: Callable[..., bytes], sample: Snapshot) -> None:
    """
    A frame that holds more than it was to hold, whatever size it names, is not decompressed further.
    """
    bomb = zstd.compress(bytes(256 << 20))
    data = encode(sample)
    pages = zstd.decompress(data[56 + int.from_bytes(data[12:16], "big") :])
    late = zstd.compress(pages + bytes(256 << 20))
    assert zstd.get_frame_info(late).decompressed_size == (256 << 20) + 12288
    # The promised pages come first, and the frame names the size that they have. Its size is in the four
    # bytes after the magic number, the descriptor and the window.
    lying = late[:6] + (12288).to_bytes(4, "little") + late[10:]
    assert zstd.get_frame_info(lying).decompressed_size == 12288
    tracemalloc.start()
    assert refusal(forge(lambda _: None, bomb)) == ("body: the frame names 268435456 bytes, the table 12288")
    assert refusal(forge(lambda _: None, lying)).startswith("body: ")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 2 << 20


def test_a_table_that_promises_a_large_memory_ends_at_the_first_page_that_is_not_there(
    forge: Callable[..., bytes],
) -> None:
    """
    Half a gigabyte promised by a megabyte of made-up digests costs one page.
    """
    count = 1 << 17

    def promise(header: dict[str, Any]) -> None:
        header["pages"] = b"".join(index.to_bytes(32, "big") for index in range(1, count + 1))
        header["state"]["delivery"] = None
        header["state"]["mind"].update(
            memory_bytes=1 << 32, indices=packed(*range(count)), contents=packed(*range(1, count + 1))
        )

    data = forge(promise, zstd.compress(bytes(count * 4096)))
    tracemalloc.start()
    assert refusal(data) == "body: content 1 does not have its digest"
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 12 * len(data)


def test_a_frame_that_wants_a_large_window_is_refused(forge: Callable[..., bytes]) -> None:
    """
    The window is memory too, and a frame may ask for any.
    """
    frame = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    start = frame.compress(b"x", mode=zstd.ZstdCompressor.FLUSH_BLOCK)
    body = start + frame.compress(b"y" * 12287, mode=zstd.ZstdCompressor.FLUSH_FRAME)
    assert refusal(forge(lambda _: None, body)).startswith("body: ")


@given(st.binary(max_size=200), st.booleans())
def test_noise_is_refused(noise: bytes, with_magic: bool) -> None:
    """
    Random bytes, with and without a beginning that looks right.
    """
    refusal((b"\x89RSN\r\n\x1a\n\0\0\0\1" if with_magic else b"") + noise)


def test_a_refusal_names_the_file(sample: Snapshot) -> None:
    """
    When there is one.
    """
    with pytest.raises(SnapshotCorrupt) as caught:
        decode(encode(sample)[:-1], source="a.snap")
    size_bytes = len(encode(sample))
    assert caught.value.message == (
        f"a.snap: snapshot is damaged: length: {size_bytes - 1} bytes, expected {size_bytes}"
    )
    assert caught.value.details == {"path": "a.snap"}


def test_the_codec_is_the_one_that_guests_meet(sample: Snapshot) -> None:
    """
    The header is a payload like any other, so its bounds are the codec's.
    """
    data = encode(sample)
    header = data[56 : 56 + int.from_bytes(data[12:16], "big")]
    assert codec.encode(codec.decode(header)) == header
