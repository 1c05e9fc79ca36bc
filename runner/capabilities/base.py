"""
Calls as data, and the registry that answers them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from runner.codec import Value
from runner.errors import LimitExceeded, ProviderError
from runner.journal.records import Decision, Receipt, Resolution, Start
from runner.kernel.abi import Status
from runner.package.fields import FieldProblem

_MAX_MESSAGE_CHARACTERS: Final = 500


class CallResult(NamedTuple):
    """
    The end of a call, as the guest is woken with it.

    Attributes:
        status: `OK`, or why not.
        payload: The answer, or an error's `{kind, message}`.
    """

    status: Status
    payload: Value


Emit: TypeAlias = Callable[[Value], Awaitable[None]]
"""
Hands one part of a streamed answer to the guest; returns when it was taken in.
"""

Handler: TypeAlias = Callable[[Value, Emit], Awaitable[Value]]
"""
Answers a request with the payload of an `OK`, or raises `Refusal`, `FieldProblem`, `LimitExceeded` or
`ProviderError`.
"""

KeyedHandler: TypeAlias = Callable[[Value, Emit, str], Awaitable[Value]]
"""
A handler that is told the identity of its attempt, to pass on to what it reaches. May raise `OutcomeUnknown`.
"""

StepRecord: TypeAlias = Start | Receipt | Decision | Resolution
"""
What is on record of the inside of one call.
"""


class Steps(Protocol):
    """
    The inside of a call that takes several steps, on record: what was paid for or done is never paid for or
    done again, whenever the process dies.

    Attributes:
        execution: Identity of this attempt.
        past: What earlier attempts, and people, left on record of this call, oldest first.
    """

    @property
    def execution(self) -> str:
        """
        Identity of this attempt.
        """

    @property
    def past(self) -> Sequence[StepRecord]:
        """
        What is on record of this call.
        """

    async def note(self, part: str, payload: Value) -> None:
        """
        Write down what came of a part of the call; durable when this returns, also if it is cancelled.
        """

    async def rule(self, part: str, name: str, arguments: Value) -> str | None:
        """
        Have policy rule on a tool that the call wants to use, and begin it if that may be; durable.

        Returns:
            The rule that refuses it, or `None`: then its effect may happen now.

        Raises:
            Parked: If a person has to rule first. The call ends here and is made again after that.
        """

    async def begin(self, part: str, name: str, arguments: Value) -> None:
        """
        Begin a tool that a person allowed; durable.
        """


StepHandler: TypeAlias = Callable[[Value, Emit, Steps], Awaitable[Value]]
"""
A handler of a call that takes several steps. May raise `OutcomeUnknown`, and lets `Parked` through.
"""


class Parked(Exception):
    """
    Raised inside a handler when a person has to rule before its call can go on.
    """


class StepUnwritten(Exception):
    """
    Raised by `Steps` when something could not be written down: the instance is on its way down, and nothing
    may follow. Handlers let it through.
    """


class Forgetful:
    """
    Steps that nobody keeps.

    Args:
        execution: Identity of the attempt.
    """

    past: tuple[StepRecord, ...] = ()

    def __init__(self, execution: str = "") -> None:
        self.execution = execution

    async def note(self, part: str, payload: Value) -> None:
        """
        Forget it.
        """

    async def rule(self, part: str, name: str, arguments: Value) -> str | None:
        """
        Allow it: whether the tool is granted is asked when it is used.
        """

    async def begin(self, part: str, name: str, arguments: Value) -> None:
        """
        Forget it.
        """


ERROR_KINDS: Final[Mapping[Status, str]] = {
    Status.INVALID: "invalid",
    Status.DENIED: "denied",
    Status.LIMIT: "limit",
    Status.UNSUPPORTED: "unsupported",
    Status.NOT_FOUND: "not_found",
    Status.FAILED: "upstream",
}
"""
The `kind` of an error's payload, by the status that it comes with.
"""


class Refusal(Exception):
    """
    Raised by a handler to answer a call with something else than `OK`.

    Args:
        status: One of `ERROR_KINDS`.
        message: One sentence for the guest's author.
        kind: A closer word than the status's own, or `None`.
    """

    def __init__(self, status: Status, message: str, *, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


class OutcomeUnknown(Exception):
    """
    Raised by a handler that gave an effect up of which nobody knows whether it happened.
    """


class Handlers:
    """
    The handlers of one instance.

    Args:
        table: Handler by operation, such as `llm.chat`.
        keyed: Those that are told which attempt they make, by operation.
        stepped: Those that take several steps, by operation.
    """

    def __init__(
        self,
        table: Mapping[str, Handler],
        keyed: Mapping[str, KeyedHandler] | None = None,
        stepped: Mapping[str, StepHandler] | None = None,
    ) -> None:
        self._table: dict[str, StepHandler] = {name: _unkeyed(handler) for name, handler in table.items()}
        self._table.update((name, _keyed(handler)) for name, handler in (keyed or {}).items())
        self._table.update(stepped or {})

    @property
    def operations(self) -> frozenset[str]:
        """
        Operations that have a handler.
        """
        return frozenset(self._table)

    async def handle(
        self, operation: str, request: Value, emit: Emit, *, execution: str = "", steps: Steps | None = None
    ) -> CallResult:
        """
        Answer one call; whether the operation is granted was decided when the module was bound.

        May be cancelled at any moment; then the effect may have happened all the same.

        Args:
            operation: Such as `llm.chat`.
            request: The decoded request.
            emit: Takes the parts of a streamed answer, in order, before this returns.
            execution: Identity of this attempt, for handlers that pass it on.
            steps: The inside of the call on record; `None` where nobody keeps any.

        Raises:
            OutcomeUnknown: If nobody knows whether the effect happened.
            Parked: If a person has to rule before the call can go on.
        """
        handler = self._table.get(operation)
        if handler is None:
            return refused(Status.UNSUPPORTED, f"this host does not offer {operation}")
        try:
            return CallResult(Status.OK, await handler(request, emit, steps or Forgetful(execution)))
        except Refusal as refusal:
            return refused(refusal.status, refusal.message, refusal.kind)
        except FieldProblem as problem:
            where = "" if problem.key else "request: "
            return refused(Status.INVALID, f"{where}{problem}")
        except LimitExceeded as error:
            return refused(Status.LIMIT, error.message)
        except ProviderError as error:
            return refused(Status.FAILED, error.message)


def refused(status: Status, message: str, kind: str | None = None) -> CallResult:
    """
    The result that says no; the message is cut to a few hundred characters.
    """
    word = kind or ERROR_KINDS[status]
    return CallResult(status, {"kind": word, "message": message[:_MAX_MESSAGE_CHARACTERS]})


def _unkeyed(handler: Handler) -> StepHandler:
    async def handle(request: Value, emit: Emit, steps: Steps) -> Value:
        del steps
        return await handler(request, emit)

    return handle


def _keyed(handler: KeyedHandler) -> StepHandler:
    async def handle(request: Value, emit: Emit, steps: Steps) -> Value:
        return await handler(request, emit, steps.execution)

    return handle
