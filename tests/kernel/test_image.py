"""
What instances start from: shared, immutable, and gone when nobody uses it.
"""

from __future__ import annotations

import gc
import os
import weakref
from typing import Final

import pytest

from runner.kernel.image import Image
from runner.kernel.mapping import ZERO_PAGE
from runner.kernel.state import PAGE_BYTES, Mind
from tests.kernel.guests import Op, command, deliver, image_of, machine, reply, scripted

A: Final = b"a" * PAGE_BYTES
B: Final = b"b" * PAGE_BYTES

each_way = pytest.mark.parametrize("copied", [True, False])


@each_way
def test_an_image_holds_its_mind(copied: bool) -> None:
    """Pages of zeros are not told from pages that are not there."""
    image = Image(Mind(131072, {3: A, 4: ZERO_PAGE}, (1, 2.5)), copied=copied)
    assert image.mind == Mind(131072, {3: A}, (1, 2.5))
    assert image.root is image
    assert image.digest == Image(Mind(131072, {3: A}, (1, 2.5)), copied=not copied).digest


@pytest.mark.parametrize(
    "mind",
    [
        Mind(196608, {3: A}, (1, 2.5)),
        Mind(131072, {3: B}, (1, 2.5)),
        Mind(131072, {2: A}, (1, 2.5)),
        Mind(131072, {3: A, 5: B}, (1, 2.5)),
        Mind(131072, {3: A}, (2, 2.5)),
        Mind(131072, {3: A}, (1, -2.5)),
    ],
)
def test_images_of_different_minds_have_different_digests(mind: Mind) -> None:
    """Size, content, place and globals."""
    assert Image(mind).digest != Image(Mind(131072, {3: A}, (1, 2.5))).digest


@each_way
def test_an_overlay_differs_from_its_root_by_its_pages(copied: bool) -> None:
    """Also by pages that are zero in it, and by its size; an overlay's overlay has the same root."""
    root = Image(Mind(131072, {3: A, 5: A}, (1,)), copied=copied)
    overlay = root.overlay(Mind(196608, {5: ZERO_PAGE, 40: B}, (2,)))
    assert overlay.root is root
    assert overlay.copied is copied
    assert overlay.mind == Mind(196608, {3: A, 40: B}, (2,))
    assert overlay.digest == Image(overlay.mind).digest
    second = overlay.overlay(Mind(196608, {3: B}, (3,)))
    assert second.root is root
    assert second.mind == Mind(196608, {3: B, 5: A}, (3,))


def test_a_mind_that_is_not_well_formed_is_no_image() -> None:
    """Its numbers would become addresses."""
    with pytest.raises(ValueError, match=r"^page 32 of 4096 bytes in a memory of 131072$"):
        Image(Mind(131072, {32: A}, ()))
    with pytest.raises(ValueError, match=r"^memory of 1 bytes$"):
        Image(Mind(65536, {}, ())).overlay(Mind(1, {}, ()))


@each_way
def test_frozen_pages_are_those_that_differ_from_the_root(copied: bool) -> None:
    """A page that was written back to what it was is none of them; one set to zero is."""
    image = Image(Mind(65536, {0: A, 1: A}, ()), copied=copied)
    now = {0: A, 1: ZERO_PAGE, 2: ZERO_PAGE, 3: B}
    assert image.differing([0, 1, 2, 3], now.__getitem__) == {1: ZERO_PAGE, 3: B}
    overlay = image.overlay(Mind(65536, {1: B, 3: B}, ()))
    assert overlay.differing([0], {0: B, 1: B, 3: B}.__getitem__) == {0: B, 1: B, 3: B}
    assert overlay.differing([1], {1: A, 3: B}.__getitem__) == {3: B}


def test_instances_do_not_see_each_other() -> None:
    """Nor does one change the image under the next."""
    image = machine().image
    digest = image.digest
    first = machine()
    deliver(first, 1, command(Op.FILL, 0x5000, 9, 30000) + reply(1))
    second = machine()
    assert second.freeze().mind.pages == {}
    assert Image(image.mind).digest == digest


def test_an_image_goes_with_its_last_user() -> None:
    """At once, with its memory file: no garbage collector has to come by."""
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/dev/fd"))
        image = image_of(scripted())
        overlay = image.overlay(Mind(131072, {3: A}, image.globals))
        gone = [weakref.ref(image), weakref.ref(overlay)]
        del image, overlay
        assert [ref() for ref in gone] == [None, None]
        assert len(os.listdir("/dev/fd")) == before
    finally:
        gc.enable()
