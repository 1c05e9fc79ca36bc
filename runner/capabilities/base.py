"""
Calls as data, and the registry that answers them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from runner.codec import Value
from runner.errors import LimitExceeded, ProviderError
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
    """

    def __init__(self, table: Mapping[str, Handler], keyed: Mapping[str, KeyedHandler] | None = None) -> None:
        self._table: dict[str, KeyedHandler] = {name: _unkeyed(handler) for name, handler in table.items()}
        self._table.update(keyed or {})

    @property
    def operations(self) -> frozenset[str]:
        """
        Operations that have a handler.
        """
        return frozenset(self._table)

    async def handle(self, operation: str, request: Value, emit: Emit, *, execution: str = "") -> CallResult:
        """
        Answer one call; whether the operation is granted was decided when the module was bound.

        May be cancelled at any moment; then the effect may have happened all the same.

        Args:
            operation: Such as `llm.chat`.
            request: The decoded request.
            emit: Takes the parts of a streamed answer, in order, before this returns.
            execution: Identity of this attempt, for handlers that pass it on.

        Raises:
            OutcomeUnknown: If nobody knows whether the effect happened.
        """
        handler = self._table.get(operation)
        if handler is None:
            return refused(Status.UNSUPPORTED, f"this host does not offer {operation}")
        try:
            return CallResult(Status.OK, await handler(request, emit, execution))
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


def _unkeyed(handler: Handler) -> KeyedHandler:
    async def handle(request: Value, emit: Emit, execution: str) -> Value:
        del execution
        return await handler(request, emit)

    return handle
