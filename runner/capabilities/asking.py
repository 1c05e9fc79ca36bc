"""
One turn of a model: reserved, asked, followed to its end, settled, and on record before anything follows.
"""

from __future__ import annotations

import itertools
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, assert_never

import anyio

from runner import codec
from runner.capabilities.base import Refusal
from runner.capabilities.progress import Ended, Turn, failed_step, meter_step, request_step, turn_step
from runner.capabilities.usage import usage_to_wire
from runner.errors import ProviderError, RequestUnsupported
from runner.kernel.abi import Status
from runner.policy.budgets import NO_BUDGET, ONE_CALL, Account, Budget, Charge, OwnAccount, show_exceeded
from runner.policy.prices import PINNED, Price, Prices
from runner.providers.base import (
    NOTHING_USED,
    UNKNOWN_USAGE,
    ImagePart,
    ModelRequest,
    Part,
    Provider,
    Reasoning,
    Retry,
    Stop,
    StopReason,
    StreamEvent,
    TextDelta,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from runner.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.capabilities.base import Emit, Steps
    from runner.capabilities.usage import UsageMeter
    from runner.codec import Value

MAX_ANSWER_CHARACTERS: Final = 2 * MIB
"""
More text than any model writes in one turn; an answer beyond it is given up.
"""

DEFAULT_ANSWER_TOKENS: Final = 8192
"""
Bound of an answer under a budget of tokens or money, where the agent states none.
"""

T = TypeVar("T")

_BYTES_PER_TOKEN: Final = 2
_TOKENS_PER_MESSAGE: Final = 16
_TOKENS_PER_IMAGE: Final = 4000
_RESERVES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """
    What an instance may spend and how that is counted.

    Attributes:
        usage: The instance's totals.
        budget: Bounds.
        account: Where it is spent together with others.
        prices: What models cost.
        on_refusal: Hears of the bound, when a request is refused for one.
        on_event: Hears what models say and use while they do.
    """

    usage: UsageMeter
    budget: Budget = NO_BUDGET
    account: Account = field(default_factory=OwnAccount)
    prices: Prices = PINNED
    on_refusal: Callable[[str, int, int], None] | None = None
    on_event: Callable[[str, Value], None] | None = None

    def tell(self, kind: str, value: Value) -> None:
        """
        Tell who watches of an event: `text`, `tool` or `turn`.
        """
        if self.on_event is not None:
            self.on_event(kind, value)

    def refuse(self, name: str, value: int, bound: int) -> NoReturn:
        """
        Refuse a request for a bound.

        Raises:
            Refusal: Always.
        """
        if self.on_refusal is not None:
            self.on_refusal(name, value, bound)
        raise Refusal(Status.LIMIT, show_exceeded(name, value, bound), kind="budget")


def estimate_tokens(request: ModelRequest) -> int:
    """
    Tokens that a request may have, on the safe side for text that people write: one for each two bytes, and
    some for each message and picture.
    """
    size_bytes, extra = len((request.system or "").encode()), _TOKENS_PER_MESSAGE
    for message in request.messages:
        extra += _TOKENS_PER_MESSAGE
        for part in message.parts:
            more, pictures = _size_of(part)
            size_bytes += more
            extra += pictures * _TOKENS_PER_IMAGE
    for tool in request.tools:
        size_bytes += len(tool.name) + len(tool.description.encode()) + len(repr(tool.input_schema).encode())
        extra += _TOKENS_PER_MESSAGE
    if request.output_schema is not None:
        size_bytes += len(repr(request.output_schema).encode())
    return -(-size_bytes // _BYTES_PER_TOKEN) + extra


def _size_of(part: Part) -> tuple[int, int]:
    match part:
        case TextPart():
            return len(part.text.encode()), 0
        case ImagePart():
            return 0, 1
        case ToolCall():
            return len(part.name) + len(codec.encode(dict(part.arguments))) + len(part.seal or ""), 0
        case ToolResult():
            if isinstance(part.content, str):
                return len(part.content.encode()), 0
            sizes = [_size_of(each) for each in part.content]
            return sum(size for size, _ in sizes), sum(pictures for _, pictures in sizes)
        case Reasoning():
            return len(part.data), 0
        case _:
            assert_never(part)


@dataclass(slots=True, kw_only=True)
class Asking:
    """
    One turn.

    Attributes:
        number: Which of its call.
        model: `PROVIDER/MODEL`.
        provider: Who is asked.
        request: What.
        purse: Pays.
        steps: Where it goes on record.
        emit: Takes the text as it comes, or `None`.
    """

    number: int
    model: str
    provider: Provider
    request: ModelRequest
    purse: Purse
    steps: Steps
    emit: Emit | None
    # The bound of the answer is the budget's, and not the agent's.
    _is_capped: bool = False
    _asked_tokens: int | None = None
    _reserved: Charge = ONE_CALL
    _started_s: float = 0.0

    async def ask(self) -> Turn:
        """
        The model's turn; on record when this returns.

        Raises:
            Refusal: If a budget is used up, or the model can't be asked that.
            ProviderError: If it came to nothing.
        """
        self._asked_tokens = self.request.max_tokens
        await self._reserve()
        draft = _Draft(self.provider.name, bool(self.request.tools))
        try:
            with anyio.move_on_after(self._patience_s) as patience:
                await self._follow(draft)
            turn = draft.finish(self._ended, is_late=patience.cancelled_caught)
            _check_can_be_kept(self.provider.name, self.number, turn)
        except _OutOfTime:
            await self._fail("out of time", draft.usage)
            spent = self._spent()
            self.purse.refuse("wall_ms", spent.wall_ms, self.purse.budget.wall_ms or 0)
        except RequestUnsupported as error:
            await self._fail(error.message, NOTHING_USED)
            raise Refusal(Status.UNSUPPORTED, error.message) from error
        except ProviderError as error:
            # A refusal by status costs nothing; what a broken stream cost is known only if it said so.
            refused = error.status is not None and not draft.parts and not draft.pieces
            await self._fail(error.message, NOTHING_USED if refused else draft.usage)
            raise
        except BaseException as error:
            await self._fail(type(error).__name__, draft.usage)
            raise
        await self._settle(turn_step(self.number, turn), turn.ended)
        self.purse.tell("turn", usage_to_wire(turn.ended.usage))
        if turn.stop == "max_tokens" and self._is_capped:
            self._refuse_rest()
        return turn

    async def _reserve(self) -> None:
        """
        Take what the request may cost at most, and bound its answer so that it holds.
        """
        purse = self.purse
        input_tokens = estimate_tokens(self.request)
        asked = self._asked_tokens
        for attempt in itertools.count(1):
            output_tokens = self._room(input_tokens, self._spent())
            self.request = replace(self.request, max_tokens=output_tokens)
            self._is_capped = output_tokens is not None and output_tokens < (asked or DEFAULT_ANSWER_TOKENS)
            self._reserved = self._charge(input_tokens, output_tokens)
            over = await self._off_loop(
                lambda: purse.account.reserve(purse.budget, self._reserved, purse.usage.charged)
            )
            if over is None:
                step = request_step(self.number, self.model, self._reserved)
                await self._note(step)
                return
            # Others spend from it too: what is left is looked at again, but not for ever.
            if attempt == _RESERVES:
                purse.refuse(*over)

    def _room(self, input_tokens: int, spent: Charge) -> int | None:
        """
        Most tokens that the answer may have, or `None` for as many as the agent and the provider like.
        """
        budget, bound = self.purse.budget, self._asked_tokens
        rooms: list[int] = []
        if budget.tokens is not None:
            rooms.append(budget.tokens - spent.tokens - input_tokens)
            if rooms[-1] < 1:
                self.purse.refuse("tokens", spent.tokens + input_tokens + 1, budget.tokens)
        if budget.usd_pico is not None:
            price = self._price()
            left = budget.usd_pico - spent.usd_pico - price.at_most(input_tokens, 0)
            if left < price.output:
                self.purse.refuse("usd_pico", budget.usd_pico - left + price.output, budget.usd_pico)
            if price.output:
                rooms.append(left // price.output)
        if not rooms:
            return bound
        return min(*rooms, bound or DEFAULT_ANSWER_TOKENS)

    def _price(self) -> Price:
        price = self.purse.prices.price(self.model)
        if price is None:
            problem = f"no price is known for {self.model}, so its budget in usd can't be kept"
            raise Refusal(Status.LIMIT, problem, kind="budget")
        return price

    def _charge(self, input_tokens: int, output_tokens: int | None) -> Charge:
        if output_tokens is None:
            return Charge(calls=1)
        price = self.purse.prices.price(self.model)
        money = price.at_most(input_tokens, output_tokens) if price else 0
        return Charge(calls=1, tokens=input_tokens + output_tokens, usd_pico=money)

    def _spent(self) -> Charge:
        return self.purse.account.spent().most(self.purse.usage.charged)

    @property
    def _patience_s(self) -> float | None:
        wall_ms = self.purse.budget.wall_ms
        return None if wall_ms is None else max(0.0, (wall_ms - self._spent().wall_ms) / 1000)

    async def _follow(self, draft: _Draft) -> None:
        self._started_s = time.monotonic()
        async with aclosing(self.provider.stream(self.request)) as events:
            async for event in events:
                if isinstance(event, Retry):
                    await self._retry(event)
                    continue
                draft.take(event)
                if isinstance(event, TextDelta):
                    self.purse.tell("text", event.text)
                    if self.emit is not None:
                        await self.emit({"text": event.text})
                if draft.stop is not None:
                    break

    async def _retry(self, event: Retry) -> None:
        """
        An attempt failed: one of which nobody knows what it cost has used up what was reserved.
        """
        if event.status is None:
            await self._fail(event.problem, UNKNOWN_USAGE)
            await self._reserve()
        step = {"step": "retry", "turn": self.number, "model": self.model}
        await self.steps.note(
            str(self.number),
            {**step, "attempt": event.attempt, "problem": event.problem, "status": event.status},
        )
        self._started_s = time.monotonic()

    def _refuse_rest(self) -> NoReturn:
        spent, budget = self._spent(), self.purse.budget
        if budget.tokens is not None and budget.tokens - spent.tokens < _TOKENS_PER_MESSAGE:
            self.purse.refuse("tokens", spent.tokens, budget.tokens)
        if budget.usd_pico is not None:
            self.purse.refuse("usd_pico", spent.usd_pico, budget.usd_pico)
        self.purse.refuse("tokens", spent.tokens, budget.tokens or 0)

    def _ended(self, usage: Usage) -> Ended:
        price = self.purse.prices.price(self.model)
        cost: int | None = None
        if price is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            cost = price.cost(
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens or 0,
                usage.cache_write_tokens or 0,
            )
        wall_ms = max(0, round((time.monotonic() - self._started_s) * 1000))
        return Ended(self.model, usage, cost, self._reserved, wall_ms)

    async def _fail(self, problem: str, usage: Usage) -> None:
        ended = self._ended(usage)
        await self._settle(failed_step(self.number, problem, ended), ended)

    async def _settle(self, step: dict[str, Value], ended: Ended) -> None:
        before = self.purse.usage.charged
        # What was paid for is on record, whoever gives the call up now.
        with anyio.CancelScope(shield=True):
            await self._note(step)
            actual = self.purse.usage.charged.minus(before).plus(ended.reserved)
            await self._off_loop(lambda: self.purse.account.settle(ended.reserved, actual))

    async def _note(self, step: dict[str, Value]) -> None:
        # Counted before it is durable: whoever asks meanwhile must not spend it again.
        meter_step(self.purse.usage, codec.encode(step))
        await self.steps.note(str(self.number), step)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        if isinstance(self.purse.account, OwnAccount):
            return work()
        return await anyio.to_thread.run_sync(work)


class _OutOfTime(Exception):
    """
    The budget of wall time is used up.
    """


def _check_can_be_kept(provider: str, number: int, turn: Turn) -> None:
    try:
        codec.decode(codec.encode(turn_step(number, turn)))
    except (codec.CodecError, TypeError) as error:
        raise ProviderError(provider, f"the answer can't be kept: {error}") from error


@dataclass(slots=True)
class _Draft:
    """
    What has come of a model's turn.
    """

    provider: str
    offers_tools: bool
    parts: list[Part] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    usage: Usage = UNKNOWN_USAGE
    stop: StopReason | None = None

    def take(self, event: StreamEvent) -> None:
        match event:
            case TextDelta():
                self._measure(len(event.text))
                self.pieces.append(event.text)
            case ToolCall():
                if not self.offers_tools:
                    raise ProviderError(self.provider, "called a tool that it was not offered")
                self._measure(len(codec.encode(dict(event.arguments))))
                self._end_text()
                self.parts.append(event)
            case Reasoning():
                self._measure(len(event.data) + len(event.text))
                self._end_text()
                self.parts.append(event)
            case Usage():
                self.usage = event
            case Stop():
                self._end_text()
                self.stop = event.reason
            case Retry():
                pass
            case _:
                assert_never(event)

    def finish(self, ended: Callable[[Usage], Ended], *, is_late: bool) -> Turn:
        """
        The turn, if it is one: what it ends with must agree with what it says.
        """
        if is_late:
            raise _OutOfTime
        if self.stop is None:
            raise ProviderError(self.provider, "the answer broke off")
        calls = [part for part in self.parts if isinstance(part, ToolCall)]
        if self.stop == "tool_calls" and not calls:
            raise ProviderError(self.provider, "the turn ended for tools that it does not call")
        if calls and self.stop in ("end", "stop_sequence"):
            raise ProviderError(self.provider, "the turn calls tools and ends as if it did not")
        if len({call.id for call in calls}) != len(calls):
            raise ProviderError(self.provider, "two tool calls of a turn have the same id")
        return Turn(tuple(self.parts), self.stop, ended(self.usage))

    def _measure(self, more: int) -> None:
        self.characters += more
        if self.characters > MAX_ANSWER_CHARACTERS:
            raise ProviderError(self.provider, "the answer is too long")

    def _end_text(self) -> None:
        if self.pieces:
            self.parts.append(TextPart("".join(self.pieces)))
            self.pieces.clear()
