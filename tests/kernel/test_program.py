"""
A program: one compiled, linked module that any number of instances share.
"""

from __future__ import annotations

import gc
import weakref

import pytest

from runner.errors import Denied
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from tests.kernel.guests import (
    GRANTED,
    chat,
    deliver,
    image_of,
    program,
    reply,
    scripted_image,
    scripted_text,
    wake,
)


def test_instances_of_one_program_share_nothing_but_code() -> None:
    """Each has its memory, its calls and its numbers."""
    made = program(scripted_text())
    image = image_of(made)
    one, other = (Machine(made, image, Limits(), entropy=bytes(32)) for _ in range(2))
    deliver(one, 1, chat() * 3)
    assert [call.number for call in deliver(other, 7, chat()).calls] == [1]
    assert wake(other, 1, reply(7)).reply is not None
    assert one.open_delivery == 1
    assert image.digest == scripted_image().digest


def test_every_import_must_be_granted_or_refused() -> None:
    """The message names the first that is neither, and the flag that grants it."""
    for operation in sorted(GRANTED):
        with pytest.raises(Denied) as caught:
            program(scripted_text(), granted=GRANTED - {operation})
        assert (caught.value.operation, caught.value.rule) == (operation, "default deny")
        assert caught.value.hint == f"add --allow {operation}"
        made = program(scripted_text(), granted=GRANTED - {operation}, denied=frozenset({operation}))
        assert made.granted == GRANTED - {operation}


def test_a_program_goes_with_its_last_instance() -> None:
    """Code, linker and host functions, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        made = program(scripted_text())
        gone = weakref.ref(made)
        instance = Machine(made, image_of(made), Limits(), entropy=bytes(32))
        del made
        assert gone() is not None
        del instance
        assert gone() is None
    finally:
        gc.enable()
