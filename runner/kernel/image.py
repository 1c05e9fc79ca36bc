"""
An image: the pages and globals that instances start from, shared by all of them.

An agent's image is its mind after `agent_start`. Snapshots are stored as the pages that differ from it.
Many instances restored from one snapshot may share an image of their own, made with `overlay`; their
snapshots still refer to the agent's.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from runner.kernel.mapping import ZERO_PAGE, back
from runner.kernel.mind_digest import PageDigests
from runner.kernel.state import Mind

if TYPE_CHECKING:
    from collections.abc import Iterable


class Image:
    """
    Immutable; safe to share between threads and instances.

    Args:
        mind: The initial mind. Without `root`, its pages are those that are not zero; with `root`,
            those that differ from it.
        root: The agent's image, when this is another's overlay.
        copied: Copy pages into each instance instead of mapping them.

    Raises:
        ValueError: If the mind is not well formed.
        HostExhausted: If the process can hold no more images.
    """

    def __init__(self, mind: Mind, *, root: Image | None = None, copied: bool = False) -> None:
        mind.check()
        self.memory_bytes = mind.memory_bytes
        self.globals = mind.globals
        # No reference to itself: an image must go, with its descriptor, when the last instance does.
        self._base = root
        self.copied = copied
        self._overlaid = mind.pages if root else {}
        pages = {index: page for index, page in mind.pages.items() if root or page != ZERO_PAGE}
        if root:
            pages = root.nonzero_pages | pages
        self._nonzero = frozenset(index for index, page in pages.items() if page != ZERO_PAGE)
        self.page_digests = PageDigests(pages)
        self.backing = back(mind.memory_bytes, pages, copied=copied)

    @property
    def root(self) -> Image:
        """
        The agent's image: this one, unless it is an overlay.
        """
        return self._base or self

    @cached_property
    def digest(self) -> bytes:
        """
        Digest of the mind that this image holds.
        """
        return self.page_digests.mind_digest(self.memory_bytes, self.globals, {})

    @property
    def nonzero_pages(self) -> dict[int, bytes]:
        """
        Content of each page that is not all zero.
        """
        return {index: self.backing.page(index) for index in sorted(self._nonzero)}

    @property
    def mind(self) -> Mind:
        """
        The mind that this image holds, its pages counted from zeros.
        """
        return Mind(self.memory_bytes, self.nonzero_pages, self.globals)

    def overlay(self, mind: Mind) -> Image:
        """
        An image that starts where `mind` is, for many instances of one snapshot.

        Args:
            mind: Pages that differ from this image's root, as a snapshot has them.
        """
        return Image(mind, root=self.root, copied=self.copied)

    def differing(self, touched: Iterable[int], read_page: PageReader) -> dict[int, bytes]:
        """
        The pages of an instance of this image that differ from its root.

        Args:
            touched: Pages that may differ from this image.
            read_page: Content of the instance's page by index.
        """
        root = self.root.backing.page
        candidates = sorted({*touched, *self._overlaid}) if self._overlaid else touched
        pages = ((index, read_page(index)) for index in candidates)
        return {index: page for index, page in pages if page != root(index)}


if TYPE_CHECKING:
    from collections.abc import Callable

    PageReader = Callable[[int], bytes]
