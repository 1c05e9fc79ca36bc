"""
Snapshots: an instance at one journal position, as bytes that any process or machine can take up.

Whoever reads one knows that it is whole before it uses a single byte of it.

`model` is the value, `format` the bytes, `files` the file; `rules` says what holds in every snapshot,
`header` and `pages` are the two halves of the format. The bytes are specified in
`docs/snapshot-format.md`, and files of every released version are kept in `tests/snapshot/golden` for ever.

What was weighed, and why it is not here:

- **The whole memory, compressed.** Simplest, and four milliseconds for a heap of 2 MiB. A snapshot
  stands on the agent's image, which the host has anyway, and stores what differs: 10 pages take 0.15 ms.
- **A chain of snapshots, each standing on the one before.** Smaller still, but one lost file loses all that
  follow it, and nothing can be removed. Contents are named by digest, so a store of many snapshots can
  share pages without one snapshot depending on another.
- **One frame for each page.** Any page could then be read alone, which nobody needs; compressing is three
  times slower and a third larger, measured on the heap of an interpreter. zlib is slower again.
- **Pages that can be mapped straight from the file.** They would have to lie uncompressed and aligned, and
  would be used before they are verified. Restores map an image file that the host wrote itself.
- **Pages as CBOR arrays.** The codec bounds the items of a payload; a heap of 64 MiB has 16,384 pages, twice
  over while a delivery is open. They are packed byte strings.
- **f64 as CBOR floats.** Deterministic CBOR has one NaN, WebAssembly has 2**53 - 2, and a guest can tell
  them apart. Globals that are floats are stored as their eight bytes.
- **Only the root, no digests of pages.** It would do for integrity. The digests make contents addressable,
  and let decompression stop at the first page that was not promised.
- **A signature.** The root tells whether a file is whole, not who wrote it. What a guest may do with a
  memory it could have made itself is bounded by its grants; metadata is checked against what a kernel can
  produce, and the grants of a restore come from the operator, never from the file.
- **pickle.** It runs what it reads.
"""

from runner.snapshot.files import read, write
from runner.snapshot.format import decode, encode
from runner.snapshot.model import Snapshot, SnapshotStats

__all__ = ["Snapshot", "SnapshotStats", "decode", "encode", "read", "write"]
