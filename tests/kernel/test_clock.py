"""
Wall time, interrupts and threads: what ends a slice from outside, and what it must not touch.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from runner.errors import (
    DeadlineExceeded,
)
from runner.kernel.engine import Engine
from runner.kernel.machine import Machine, StepResult
from tests.kernel.guests import (
    ENDLESS,
    FREE,
    MARK,
    Op,
    ask,
    chat,
    command,
    deliver,
    failure_of,
    guest_text,
    image_of,
    machine,
    program,
    reply,
    same,
    scripted,
    scripted_text,
    send,
)

# -- time -----------------------------------------------------------------------------------------


def while_ticking(engine: Engine, work: Callable[[], StepResult]) -> StepResult:
    """
    Do `work` while another thread reports that time passes, as fast as it can.
    """
    over = threading.Event()

    def tick() -> None:
        while not over.is_set():
            engine.tick()

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        return work()
    finally:
        over.set()
        ticker.join()


def test_a_deadline_ends_a_loop() -> None:
    """Wall time, as the host reports it; the delivery is undone."""
    instance = machine(limits=ENDLESS)
    before = instance.digest()
    result = while_ticking(scripted().engine, lambda: deliver(instance, 1, command(Op.SPIN)))
    assert isinstance(result.failure, DeadlineExceeded)
    assert failure_of(result) == "limit timeout_ms exceeded: 30000 of 30000"
    assert (result.fuel, instance.digest()) == (ENDLESS.fuel, before)


@pytest.mark.parametrize(
    ("asked", "counted"), [(None, 30_000), (40, 40), (0, 0), (-100, -100), (1 << 40, 30_000)]
)
def test_a_step_may_have_a_shorter_deadline_than_the_limit(asked: int | None, counted: int) -> None:
    """Never a longer one; and one that is over already is over at the next tick."""
    instance = machine(limits=ENDLESS)
    result = while_ticking(
        scripted().engine, lambda: deliver(instance, 1, command(Op.SPIN), deadline_ms=asked)
    )
    assert failure_of(result) == f"limit timeout_ms exceeded: {counted} of {counted}"


def test_a_deadline_ends_a_row_of_host_calls_without_a_loop() -> None:
    """Compiled code looks at the clock in loops and at function entries only; host functions do too."""
    text = guest_text(
        "(drop (call $now))" * 4000 + "(drop (call $chat (i32.const 0) (i32.const 1)))",
        imports='(import "agent" "now" (func $now (result i64)))'
        '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
        extra='(data (i32.const 0) "\\a0")',
    )
    instance = machine(text)
    result = while_ticking(instance.program.engine, lambda: deliver(instance, 1, deadline_ms=10))
    assert failure_of(result) == "limit timeout_ms exceeded: 10 of 10"


# -- interrupts -----------------------------------------------------------------------------------


def spinning(engine: Engine) -> Machine:
    """
    A guest that spins for ever, on an engine of its own: interrupts end all guests of an engine.
    """
    made = program(scripted_text(), on=engine)
    return Machine(made, image_of(made), ENDLESS, entropy=bytes(32))


def test_an_interrupt_ends_a_spinning_guest_and_those_that_start_after_it() -> None:
    """From any thread, until `resume`."""
    engine = Engine()
    instance = spinning(engine)
    ended: list[StepResult] = []
    guest = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.SPIN))))
    guest.start()
    engine.interrupt()
    guest.join()
    assert failure_of(ended[0]) == "interrupted"
    assert failure_of(deliver(instance, 2, reply(2))) == "interrupted"
    engine.resume()
    assert deliver(instance, 3, reply(3)).failure is None


def test_an_interrupt_that_was_resumed_at_once_is_still_one() -> None:
    """The guest that it ended did not overrun a deadline."""
    engine = Engine()
    instance = spinning(engine)
    ended: list[StepResult] = []
    guest = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.SPIN))))
    guest.start()
    while guest.is_alive():
        # The guest may not have started yet when the first ones come; without a pause it might never get to.
        engine.interrupt()
        engine.resume()
        guest.join(0.001)
    assert failure_of(ended[0]) == "interrupted"


# -- threads --------------------------------------------------------------------------------------


def test_the_stack_ends_in_a_trap_on_any_thread() -> None:
    """Never in the process's own stack."""
    instance = machine()
    ended: list[StepResult] = []
    thread = threading.Thread(target=lambda: ended.append(deliver(instance, 1, command(Op.RECURSE))))
    thread.start()
    thread.join()
    ended.append(deliver(instance, 2, command(Op.RECURSE)))
    assert [failure_of(each) for each in ended] == ["guest trapped: stack_overflow in recurse"] * 2


def test_machines_on_two_threads_do_not_meet() -> None:
    """One traps all the time, the other must not notice."""
    good, bad, control = machine(), machine(), machine()
    rounds = range(1, 101)

    def work(instance: Machine) -> list[StepResult]:
        return [
            deliver(instance, n, send("agent.log", n, 0) + ask("agent.random", FREE + 64, 8) + reply(n, n))
            for n in rounds
        ]

    expected = work(control)
    found: list[StepResult] = []
    other = threading.Thread(target=lambda: found.extend(work(good)))
    other.start()
    traps = [deliver(bad, n, ask("agent.now") + command(Op.UNREACHABLE)) for n in rounds]
    other.join()
    assert {failure_of(trap) for trap in traps} == {"guest trapped: unreachable in do"}
    assert found == expected
    assert same(good, control)


# -- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_inside_a_host_function_leaves_a_whole_instance() -> None:
    """The delivery never happened, the interrupt goes on to the host, and the instance lives on."""
    instance = machine()
    deliver(instance, 1, chat() + reply(1))
    before = instance.digest()
    over = threading.Event()

    def in_host_function(_number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_name == "perform":
                raise KeyboardInterrupt
            frame = frame.f_back

    def press() -> None:
        while not over.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)

    kept = signal.signal(signal.SIGUSR1, in_host_function)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            deliver(instance, 2, MARK + chat() + command(Op.BURN, 1) * 200_000)
    finally:
        over.set()
        presser.join()
        signal.signal(signal.SIGUSR1, kept)
    assert instance.digest() == before
    assert (instance.open_delivery, [call.number for call in instance.calls]) == (0, [1])
    assert deliver(instance, 3, reply(3)).failure is None
