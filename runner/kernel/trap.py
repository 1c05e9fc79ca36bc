"""
What a trap of the engine's is called in our errors.

Input: guest-controlled. Function names come from the module's name section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runner.errors import GuestTrapped

if TYPE_CHECKING:
    import wasmtime

_MAX_FRAMES: Final = 8
_MAX_NAME: Final = 120


def trapped(trap: wasmtime.Trap) -> GuestTrapped:
    """
    The trap as an error, with the innermost frames.
    """
    forget_traceback(trap)
    code = trap.trap_code
    # Host functions make no traps, so the one without a code is an exception that nobody caught.
    name = code.name.lower() if code else "uncaught_exception"
    return GuestTrapped(name, tuple(_frame_name(frame) for frame in trap.frames[:_MAX_FRAMES]))


def forget_traceback(trap: wasmtime.Trap) -> None:
    """
    Let go of the trap's Python frames. The binding keeps the trap in one of them, a circle that would hold
    the store, and with it gigabytes of address space, until the garbage collector comes by.
    """
    trap.__traceback__ = None


def _frame_name(frame: wasmtime.Frame) -> str:
    return (frame.func_name or f"function {frame.func_index}")[:_MAX_NAME]
