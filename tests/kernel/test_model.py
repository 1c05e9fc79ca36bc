"""
Whole lives of an instance against a model of what a machine promises, in plain Python.

Two instances live the same life: one without a break, the other is frozen and thawed now and then, over
its image, an overlay, copied pages, or on another processor. Neither may differ from the model, nor the
one from the other; and a third, made from the recorded inputs alone, must be the same in the end.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runner import codec
from runner.errors import Interrupted
from runner.kernel.abi import UPGRADE_KINDS, DeliveryKind, Status
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Input, Machine, StepResult, Wake
from runner.kernel.state import Answer
from tests.kernel.guests import (
    FREE,
    Op,
    ask,
    chat,
    command,
    memory_of,
    results,
    scripted,
    scripted_image,
    send,
)

LIMITS: Final = Limits(memory_bytes=6 * 65536, calls_in_flight=6, calls_per_slice=3, fuel=10_000_000)
WORDS: Final = tuple(range(FREE + 0x1000, FREE + 0x8000, 0x700))
CANCELLED: Final = codec.encode({"kind": "cancelled", "message": "cancelled by the agent"})


class Failed(Exception):
    """
    Raised by the model where the guest's slice fails.
    """


@dataclass
class Mind:
    """
    What the guest remembers.
    """

    words: dict[int, int] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    memory_pages: int = 2
    counter: int = 7


@dataclass
class Open:
    """
    An open delivery, and what a failure puts back.
    """

    number: int
    before: Mind
    calls: dict[int, int]
    answers: list[Answer] = field(default_factory=list)


@dataclass
class Model:
    """
    What an instance is, as far as anyone can tell.
    """

    mind: Mind = field(default_factory=Mind)
    calls: dict[int, int] = field(default_factory=dict)
    next_call: int = 1
    last_delivery: int = 0
    open: Open | None = None


@dataclass
class Slice:
    """
    What a slice has asked for so far.
    """

    mind: Mind
    delivery: int
    flying: dict[int, int]
    made: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    replied: bool = False


Command = tuple[str, int]

COMMANDS: Final = st.lists(
    st.tuples(st.just("store"), st.integers(0, len(WORDS) - 1))
    | st.tuples(st.just("grow"), st.integers(0, 2))
    | st.tuples(st.just("count"), st.integers(-5, 5))
    | st.tuples(st.just("chat"), st.just(0))
    | st.tuples(st.just("cancel"), st.integers(1, 12))
    | st.tuples(st.just("reply"), st.integers(0, 1)),
    max_size=6,
)
ENDINGS: Final = st.sampled_from(["return"] * 6 + ["unreachable", "spin", "fill"])


def script_of(commands: list[Command], ending: str, delivery: int) -> bytes:
    """
    The script that does `commands`.
    """
    forms: dict[str, Callable[[int], bytes]] = {
        "store": lambda n: command(Op.STORE, WORDS[n], n + delivery),
        "grow": lambda n: command(Op.GROW, n),
        "count": lambda n: command(Op.SET_I32, n),
        "chat": lambda _: chat(),
        "cancel": lambda n: ask("agent.cancel", n),
        "reply": lambda back: send("agent.reply", None, delivery - back),
    }
    endings = {
        "return": b"",
        "unreachable": command(Op.UNREACHABLE),
        "spin": command(Op.SPIN),
        "fill": command(Op.FILL, 0, 0, -1),
    }
    return b"".join(forms[name](argument) for name, argument in commands) + endings[ending]


def perform(model: Model, current: Slice, name: str, argument: int, delivery: int) -> None:
    """
    What one command does.
    """
    mind = current.mind
    if name == "store":
        mind.words[WORDS[argument]] = argument + delivery
    elif name == "grow":
        fits = mind.memory_pages + argument <= LIMITS.memory_bytes // 65536
        mind.results.append(mind.memory_pages if fits else -1)
        mind.memory_pages += argument if fits else 0
    elif name == "count":
        mind.counter = argument
    elif name == "chat":
        if len(current.made) == LIMITS.calls_per_slice or len(current.flying) == LIMITS.calls_in_flight:
            mind.results.append(Status.LIMIT)
        else:
            current.made.append(model.next_call)
            current.flying[model.next_call] = current.delivery
            mind.results.append(model.next_call)
            model.next_call += 1
    elif name == "cancel":
        known = current.flying.pop(argument, None) is not None
        mind.results.append(Status.OK if known else Status.NOT_FOUND)
        current.cancelled += [argument] * known
    else:
        number = delivery - argument
        if number == current.delivery and number:
            current.delivery, current.replied = 0, True
            mind.results.append(Status.OK)
        else:
            ended = 0 < number <= model.last_delivery
            mind.results.append(Status.SETTLED if ended else Status.NOT_FOUND)


def run(
    model: Model,
    commands: list[Command],
    ending: str,
    delivery: int,
    answer: Answer | None,
    *,
    may_wait: bool = True,
) -> StepResult:
    """
    What a step does to the model, and what it gives out; fuel, messages and payloads aside.
    """
    before, calls_before, next_call = copy.deepcopy(model.mind), dict(model.calls), model.next_call
    opened = model.open or Open(0, before, calls_before)
    if answer is not None:
        if answer.call in opened.calls:
            opened.answers.append(answer)
        if answer.status != Status.PART:
            del model.calls[answer.call]
    number = opened.number
    current = Slice(copy.deepcopy(model.mind), number, dict(model.calls))
    for name, argument in commands:
        perform(model, current, name, argument, delivery)
    if ending != "return" or (current.delivery and not (may_wait and current.flying)):
        # What a failed slice asked for never left it.
        model.next_call = next_call
        return fail(model, opened)
    model.mind, model.calls = current.mind, current.flying
    opened.answers += [
        Answer(call, Status.FAILED, CANCELLED) for call in current.cancelled if call in opened.calls
    ]
    if current.replied:
        model.open = None
    return StepResult(cancelled=tuple(call for call in current.cancelled if call not in current.made))


def fail(model: Model, opened: Open) -> StepResult:
    """
    What a failure does.
    """
    abandoned = tuple(call for call in model.calls if call not in opened.calls)
    undone = tuple(opened.answers)
    model.mind, model.calls, model.open = opened.before, dict(opened.calls), None
    if not opened.number:
        abandoned, undone = tuple(answer.call for answer in undone), ()
        for call in abandoned:
            del model.calls[call]
    return StepResult(
        failed_delivery=opened.number, abandoned=abandoned, undone=undone, failure=Interrupted()
    )


class Life(RuleBasedStateMachine):
    """
    One life of two instances and their model.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.whole = Machine(scripted(), scripted_image(), LIMITS, entropy=bytes(32))
        self.broken = Machine(scripted(), scripted_image(), LIMITS, entropy=bytes(32))
        self.inputs: list[Input | None] = []

    def step(self, event: Input | None, expected: StepResult) -> None:
        """
        Step both, or abandon their open delivery; compare what came out.
        """
        self.inputs.append(event)
        found = [
            each.abandon(Interrupted()) if event is None else each.step(event)
            for each in (self.whole, self.broken)
        ]
        one, other = (replace(each, failure=None) for each in found)
        assert one == other
        assert (one.cancelled, one.failed_delivery, one.abandoned, one.undone) == (
            expected.cancelled,
            expected.failed_delivery,
            expected.abandoned,
            expected.undone,
        )
        assert {each.failure is None for each in found} == {expected.failure is None}

    @precondition(lambda self: self.model.open is None)
    @rule(commands=COMMANDS, ending=ENDINGS, kind=st.sampled_from(DeliveryKind), gap=st.integers(1, 3))
    def deliver(self, commands: list[Command], ending: str, kind: DeliveryKind, gap: int) -> None:
        """A delivery, done or failed in its first slice or left open."""
        number = self.model.last_delivery + gap
        event = Deliver(number, kind, script_of(commands, ending, number), number)
        self.model.last_delivery = number
        self.model.open = Open(number, copy.deepcopy(self.model.mind), dict(self.model.calls))
        may_wait = kind not in UPGRADE_KINDS
        self.step(event, run(self.model, commands, ending, number, None, may_wait=may_wait))

    @precondition(lambda self: self.model.calls)
    @rule(
        which=st.integers(0, 100),
        commands=COMMANDS,
        ending=ENDINGS,
        status=st.sampled_from([Status.OK, Status.OK, Status.PART, Status.FAILED]),
    )
    def wake(self, which: int, commands: list[Command], ending: str, status: Status) -> None:
        """An answer to one of the calls in flight, or a part of one."""
        call = sorted(self.model.calls)[which % len(self.model.calls)]
        number = self.model.last_delivery
        answer = Answer(call, status, script_of(commands, ending, number))
        self.step(Wake(answer, number), run(self.model, commands, ending, number, answer))

    @precondition(lambda self: self.model.open is not None)
    @rule()
    def abandon(self) -> None:
        """The host gives up."""
        assert self.model.open is not None
        self.step(None, fail(self.model, self.model.open))

    @rule(how=st.sampled_from(["image", "overlay", "copied", "processor"]))
    def freeze_and_thaw(self, how: str) -> None:
        """The second instance goes on in another life; the states say the same."""
        state = self.broken.freeze()
        assert state == self.whole.freeze()
        made, image = scripted(), scripted_image()
        if how == "overlay":
            image = image.overlay(state.mind)
        elif how == "copied":
            image = scripted_image(copied=True)
        elif how == "processor":
            made, image = scripted("pulley64"), scripted_image("pulley64")
        self.broken = Machine.thaw(made, image, LIMITS, state)

    @invariant()
    def nobody_can_tell_them_apart(self) -> None:
        """Digests, calls and numbers; and the mind is what the model says."""
        model = self.model
        for each in (self.whole, self.broken):
            assert [call.number for call in each.calls] == list(model.calls)
            assert {call.number: call.delivery for call in each.calls} == model.calls
            assert each.open_delivery == (model.open.number if model.open else 0)
            assert each.last_delivery == model.last_delivery
            assert each.memory_bytes == model.mind.memory_pages * 65536
        assert self.whole.digest() == self.broken.digest()
        state = self.whole.freeze()
        assert (state.next_call, state.mind.globals[0]) == (model.next_call, model.mind.counter)
        assert results(self.whole) == model.mind.results
        stored = memory_of(self.whole, WORDS[0], WORDS[-1] + 4 - WORDS[0])
        for word in WORDS:
            (value,) = struct.unpack_from("<i", stored, word - WORDS[0])
            assert value == model.mind.words.get(word, 0)

    def teardown(self) -> None:
        """The recorded inputs alone make the same instance."""
        again = Machine(scripted(), scripted_image(copied=True), LIMITS, entropy=bytes(32))
        for event in self.inputs:
            again.abandon(Interrupted()) if event is None else again.step(event)
        assert again.digest() == self.whole.digest()
        assert again.freeze() == self.whole.freeze()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=25)
