"""
The guest ABI, version 1, as one table: the executable half of `docs/abi.md`.

Admission, the host functions, the generated C header and the generated parts of `docs/abi.md` all read
this table, and a test holds them together. A number here never changes its meaning; new operations
and statuses may be added under the same version, because a guest that doesn't import them can't tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

ABI_VERSION: Final = 1

MARKER_EXPORT: Final = f"runner_abi_v{ABI_VERSION}"
"""
The exported function that says which ABI a module speaks; it is never called.
"""

MEMORY_EXPORT: Final = "memory"

WASM_PAGE_BYTES: Final = 65_536

ValType = Literal["i32", "i64"]


class Status(IntEnum):
    """
    What an import returns, or a wake carries, when it isn't a number of its own. Negative is a refusal.
    """

    PART = 1
    OK = 0
    FAULT = -1
    INVALID = -2
    DENIED = -3
    LIMIT = -4
    UNSUPPORTED = -5
    NOT_FOUND = -6
    SETTLED = -7
    TOO_SMALL = -8
    FAILED = -9


STATUS_MEANING: Final[dict[Status, str]] = {
    Status.PART: "wake only: one part of a streamed answer; the call stays in flight",
    Status.OK: "done",
    Status.FAULT: "`ptr` and `len` do not lie inside the memory; nothing was read or written",
    Status.INVALID: "the bytes are not deterministic CBOR, or not of the shape asked for",
    Status.DENIED: "the operator did not grant the operation",
    Status.LIMIT: "a bound of this instance was met: size, calls, or log lines",
    Status.UNSUPPORTED: "this host, or this moment, does not offer it (timers without a resident host; "
    "operations inside `agent_start`)",
    Status.NOT_FOUND: "no such delivery, call, tool or note",
    Status.SETTLED: "the delivery was answered before",
    Status.TOO_SMALL: "the answer is longer than `len`; nothing was written",
    Status.FAILED: "wake only: the effect failed outside; the payload says how",
}


class DeliveryKind(IntEnum):
    """
    Why `agent_deliver` was called.
    """

    MESSAGE = 1
    EVENT = 2
    TICK = 3
    RESTORE = 4
    HAND_OVER = 5
    UPGRADE = 6


UPGRADE_EXPORT: Final = "agent_upgrade"
"""
The optional export that gets the deliveries of `UPGRADE_KINDS`: who lacks it can neither hand over nor take
over.
"""

UPGRADE_KINDS: Final = frozenset({DeliveryKind.HAND_OVER, DeliveryKind.UPGRADE})


class LogLevel(IntEnum):
    """
    First argument of `agent.log`.
    """

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class Param:
    """
    One parameter: its name, wasm type, and C type.
    """

    name: str
    wasm: ValType
    c: str


@dataclass(frozen=True, slots=True)
class Entry:
    """
    An export that the host calls, or an import that it offers.

    Attributes:
        capability: Import module; empty for an export.
        name: Import field or export name.
        params: In order.
        result: Wasm type of the one result, or `None`.
        summary: What it does, one sentence.
        request: CDDL of the CBOR at `ptr`/`len`, or `None` when that is no CBOR input.
        answer: CDDL of what the answer (or the written bytes) decodes to, or `None`.
        part: CDDL of each streamed part, or `None` when the answer comes whole.
        returns: What the result is when it isn't a status, or `None`.
        statuses: Every status it can return.
        wakes: Every status the wake of its call can carry; empty when it makes no call.
        optional: Whether a module may leave out this export.
    """

    capability: str
    name: str
    params: tuple[Param, ...]
    result: ValType | None
    summary: str
    request: str | None = None
    answer: str | None = None
    part: str | None = None
    returns: str | None = None
    statuses: tuple[Status, ...] = ()
    wakes: tuple[Status, ...] = ()
    optional: bool = False

    @property
    def operation(self) -> str:
        """
        Full name: `llm.chat`.
        """
        return f"{self.capability}.{self.name}"

    @property
    def makes_call(self) -> bool:
        """
        Whether it leaves the instance and is answered later by a wake.
        """
        return bool(self.wakes)


_PTR = Param("ptr", "i32", "const void *")
_OUT = Param("ptr", "i32", "void *")
_LEN = Param("len", "i32", "uint32_t")
_DELIVERY = Param("delivery", "i32", "int32_t")
_CALL = Param("call", "i32", "int32_t")
_SIZE = Param("size", "i32", "uint32_t")

EXPORTS: Final[tuple[Entry, ...]] = (
    Entry("", MARKER_EXPORT, (), None, "Says that the module speaks ABI version 1. Never called."),
    Entry(
        "",
        "agent_start",
        (),
        None,
        "Boots the guest, once, before the image is frozen. It may log, and nothing else: no clock, no "
        "randomness, no operations, so that every instance starts from the same image.",
    ),
    Entry(
        "",
        "agent_deliver",
        (_DELIVERY, Param("kind", "i32", "int32_t"), _SIZE),
        None,
        "Receives one delivery; `size` bytes of payload wait for `agent.take`. The delivery ends when "
        "the guest calls `agent.reply` or `agent.fail`, in this slice or a later one.",
        request="any",
    ),
    Entry(
        "",
        "agent_wake",
        (_CALL, Param("status", "i32", "int32_t"), _SIZE),
        None,
        "Receives the answer to a call, or a part of it; `size` bytes of payload wait for `agent.take`. "
        "A negative status comes with an `error` payload.",
        request="any / error",
    ),
    Entry(
        "",
        UPGRADE_EXPORT,
        (_DELIVERY, Param("kind", "i32", "int32_t"), _SIZE),
        None,
        "Optional. Receives the delivery of kind `HAND_OVER` when another module is to take over, and "
        "replies with all that this one shall know; or, being that other module, the delivery of kind "
        "`UPGRADE`, and replies once it has taken that in. Each ends in this slice.",
        request="{ to_agent: tstr, to_version: tstr, to_code: bstr, to_image: bstr } / "
        "{ from_agent: tstr, from_version: tstr, from_code: bstr, from_image: bstr, state: any }",
        optional=True,
    ),
)

_CALL_STATUSES = (Status.FAULT, Status.INVALID, Status.DENIED, Status.LIMIT, Status.UNSUPPORTED)
_WAKES = (Status.OK, Status.INVALID, Status.DENIED, Status.LIMIT, Status.UNSUPPORTED, Status.FAILED)


def _call(
    capability: str,
    name: str,
    summary: str,
    request: str,
    answer: str,
    *,
    part: str | None = None,
    wakes: tuple[Status, ...] = (),
) -> Entry:
    return Entry(
        capability,
        name,
        (_PTR, _LEN),
        "i32",
        summary,
        request=request,
        answer=answer,
        part=part,
        returns="call number, 1 or more",
        statuses=_CALL_STATUSES,
        wakes=(*_WAKES, *((Status.PART,) if part else ()), *wakes),
    )


IMPORTS: Final[tuple[Entry, ...]] = (
    _call(
        "llm",
        "chat",
        "Asks the model, runs the tools it calls, and answers with its final text.",
        "{ messages: [+ message], ? system: tstr, ? provider: tstr, ? model: tstr, ? max_tokens: uint, "
        "? tools: [* tstr], ? response_schema: { * tstr => any }, ? effort: effort, ? max_turns: uint, "
        "? stream: bool }",
        '{ text: tstr, stop: stop / "max_turns", model: tstr, usage: usage }',
        part="{ text: tstr }",
    ),
    _call(
        "llm",
        "complete",
        "Asks the model for one turn; tool calls in it are the guest's to make.",
        "{ messages: [+ message], ? system: tstr, ? provider: tstr, ? model: tstr, ? max_tokens: uint, "
        "? tools: [* tstr], ? response_schema: { * tstr => any }, ? effort: effort, ? stream: bool }",
        "{ content: [* content], stop: stop, model: tstr, usage: usage }",
        part="{ text: tstr }",
    ),
    _call("llm", "usage", "What this instance has used so far.", "{}", "usage"),
    _call(
        "llm",
        "providers",
        "The providers that this instance may name.",
        "{}",
        "[* { id: tstr, name: tstr, ? model: tstr }]",
    ),
    _call(
        "tool",
        "call",
        "Calls one tool by name.",
        "{ name: tstr, ? arguments: { * tstr => any } }",
        "any",
        wakes=(Status.NOT_FOUND,),
    ),
    _call(
        "tool",
        "list",
        "The tools granted to this instance.",
        "{}",
        "[* { name: tstr, description: tstr, input_schema: { * tstr => any } }]",
    ),
    _call("memory", "save", "Keeps a note.", "{ title: tstr, content: tstr }", "{ id: tstr }"),
    _call("memory", "read", "One note whole, or null.", "{ id: tstr }", "note / null"),
    _call("memory", "list", "All notes without their content.", "{}", "[* { id: tstr, title: tstr }]"),
    _call(
        "memory",
        "search",
        "Notes that match a query, best first.",
        "{ query: tstr, ? limit: uint }",
        "[* { id: tstr, title: tstr, content: tstr, score: float }]",
    ),
    _call("memory", "forget", "Removes a note; false if there was none.", "{ id: tstr }", "bool"),
    _call(
        "agent",
        "after",
        "Answers once, when the delay is over. Needs a resident host.",
        "{ delay_ms: uint, ? payload: any }",
        "any",
    ),
    _call(
        "agent",
        "every",
        "Answers with a part at each interval, until cancelled. Needs a resident host.",
        "{ interval_ms: uint, ? payload: any }",
        "any",
        part="any",
    ),
    Entry(
        "agent",
        "take",
        (_OUT, _LEN),
        "i32",
        "Copies the next bytes of this slice's payload to the guest, at most `len` of them.",
        returns="bytes copied; 0 when none are left",
        statuses=(Status.FAULT,),
    ),
    Entry(
        "agent",
        "reply",
        (_DELIVERY, _PTR, _LEN),
        "i32",
        "Answers the delivery.",
        request="any",
        statuses=(Status.OK, Status.FAULT, Status.INVALID, Status.LIMIT, Status.NOT_FOUND, Status.SETTLED),
    ),
    Entry(
        "agent",
        "fail",
        (_DELIVERY, _PTR, _LEN),
        "i32",
        "Ends the delivery with an error of the guest's own; its state is kept.",
        request="{ message: tstr, ? data: any }",
        statuses=(Status.OK, Status.FAULT, Status.INVALID, Status.LIMIT, Status.NOT_FOUND, Status.SETTLED),
    ),
    Entry(
        "agent",
        "cancel",
        (_CALL,),
        "i32",
        "Gives up a call in flight; no wake for it follows. The effect may happen all the same.",
        statuses=(Status.OK, Status.NOT_FOUND),
    ),
    Entry(
        "agent",
        "log",
        (Param("level", "i32", "int32_t"), _PTR, _LEN),
        "i32",
        "Writes one line to the operator's log.",
        request="tstr / { message: tstr, * tstr => any }",
        statuses=(Status.OK, Status.FAULT, Status.INVALID, Status.LIMIT),
    ),
    Entry(
        "agent",
        "now",
        (),
        "i64",
        "The time of this slice. It stands still while the slice runs.",
        returns="milliseconds since 1970-01-01T00:00:00Z; 0 inside `agent_start`",
    ),
    Entry(
        "agent",
        "random",
        (_OUT, _LEN),
        "i32",
        "Fills the buffer with random bytes from the instance's own recorded stream.",
        statuses=(Status.OK, Status.FAULT, Status.LIMIT, Status.UNSUPPORTED),
    ),
    Entry(
        "agent",
        "snapshot",
        (_PTR, _LEN),
        "i32",
        "Asks the host to take a snapshot once this slice has ended; `len` 0 gives no reason.",
        request="tstr",
        returns="1 if it will be taken, 0 if this host keeps none",
        statuses=(Status.FAULT, Status.INVALID),
    ),
    Entry(
        "agent",
        "restored",
        (_OUT, _LEN),
        "i32",
        "Writes what is known of this instance's last restore.",
        answer="null / { count: uint, generation: uint, at_ms: uint }",
        returns="bytes written",
        statuses=(Status.FAULT, Status.TOO_SMALL),
    ),
    Entry(
        "agent",
        "last_snapshot",
        (_OUT, _LEN),
        "i32",
        "Writes how the last snapshot went that the host tried to take of this instance.",
        answer="null / { ok: bool, bytes: uint, at_ms: uint, error: tstr / null }",
        returns="bytes written",
        statuses=(Status.FAULT, Status.TOO_SMALL),
    ),
)

SHAPES: Final[dict[str, str]] = {
    "message": '{ role: "system" / "user" / "assistant", content: tstr / [* content] }',
    "content": "text / image / tool_call / tool_result / reasoning",
    "text": '{ type: "text", text: tstr }',
    "image": '{ type: "image", media_type: "image/png" / "image/jpeg" / "image/gif" / "image/webp", '
    "data: bstr }",
    "tool_call": '{ type: "tool_call", id: tstr, name: tstr, arguments: { * tstr => any }, ? seal: tstr }',
    "tool_result": '{ type: "tool_result", id: tstr, content: tstr / [* text / image], ? is_error: bool }',
    "reasoning": '{ type: "reasoning", made_by: tstr, data: tstr, ? text: tstr }',
    "effort": '"none" / "minimal" / "low" / "medium" / "high" / "max"',
    "stop": '"end" / "max_tokens" / "stop_sequence" / "tool_calls" / "refusal"',
    "usage": "{ calls: uint, input_tokens: uint / null, output_tokens: uint / null, "
    "? cache_read_tokens: uint, ? cache_write_tokens: uint, ? reasoning_tokens: uint, ? cost_usd: float }",
    "note": "{ id: tstr, title: tstr, content: tstr }",
    "error": "{ kind: tstr, message: tstr }",
}
"""
CDDL names that requests and answers use.
"""

OPERATIONS: Final[dict[str, Entry]] = {entry.operation: entry for entry in IMPORTS}

CAPABILITIES: Final[tuple[str, ...]] = tuple(dict.fromkeys(entry.capability for entry in IMPORTS))

TIMERS: Final = frozenset({"agent.after", "agent.every"})
"""
Operations that need a host which is still there when their time comes.
"""

OWN_CAPABILITY: Final = "agent"
"""
The capability that every instance has: its own affairs.
"""
