"""
Every error that `runner` raises on purpose.

    RunnerError                kind, exit code, hint, details
    ├─ UsageError              wrong arguments or configuration                  usage           2
    │  └─ ConfigError          a file of the user's is wrong: names file and key
    ├─ Denied                  a grant said no                                   denied          3
    ├─ LimitExceeded           a bound was met: names it and both numbers        limit           4
    │  ├─ FuelExhausted        the delivery's instructions ran out
    │  ├─ DeadlineExceeded     the delivery's wall time ran out
    │  └─ MemoryExceeded       more linear memory or tables than allowed
    ├─ HostExhausted           this process can hold no more instances           limit           4
    ├─ GuestError              the guest failed
    │  ├─ GuestReturnedError   it said so, with its own payload                  guest           1
    │  ├─ GuestTrapped         WebAssembly trapped                               trap            5
    │  └─ ProtocolViolation    it broke the ABI                                  protocol        5
    ├─ ArtifactError           a file is not acceptable                          artifact        7
    │  ├─ ModuleRejected       admission refused a module: names rule and item
    │  ├─ AgentInvalid         an agent's folder or package is not well formed
    │  ├─ SnapshotCorrupt      a snapshot's bytes do not agree with themselves
    │  ├─ SnapshotIncompatible a sound snapshot that this host can't restore
    │  └─ BuildFailed          a compiler refused the agent's source
    ├─ EffectError             the outside failed                                upstream        8
    │  └─ ProviderError        a model provider failed
    ├─ Interrupted             a person or a signal stopped the work             interrupted   130
    └─ InternalError           a bug of ours                                     internal       70

An error builds its own message from typed fields, so that it reads the same everywhere. `kind` is
stable: it is the wire form, the `error.kind` of JSON output, and decides the exit code.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RunnerError(Exception):
    """
    Base of all errors below.

    Args:
        message: One sentence without a full stop: what happened, to what.
        hint: What the user may do next, or `None`.
        details: Typed facts for machines; JSON-compatible values.
    """

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = {k: v for k, v in details.items() if v is not None}
        # What was reached all the same, for whoever reports the failure.
        self.report: Any = None

    def to_wire(self) -> dict[str, Any]:
        """
        The error as data: `kind`, `message`, `hint`, `exception`, `details`.
        """
        return {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "exception": type(self).__name__,
            "details": self.details,
        }


class UsageError(RunnerError):
    """
    Raised when arguments or configuration are wrong; nothing has been started.
    """

    kind = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """
    Raised when a file that the user wrote does not say what it must.

    Args:
        path: The file.
        key: Dotted path of the key at fault, or `None` when the whole file is.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, key: str | None, problem: str, *, hint: str | None = None) -> None:
        where = f"{path}: {key}: " if key else f"{path}: "
        super().__init__(where + problem, hint=hint, path=path, key=key)


class Denied(RunnerError):
    """
    Raised when an agent needs an operation that the operator did not grant.

    Args:
        agent: The agent's name.
        operation: The operation as `capability.name`.
        rule: Which rule said no, such as `default deny` or `--deny llm`.
        flag: The flag that would grant it, or `None` when a deny rule must be removed.
    """

    kind = "denied"
    exit_code = 3

    def __init__(self, agent: str, operation: str, rule: str, *, flag: str | None = None) -> None:
        super().__init__(
            f"agent {agent} needs {operation}, which is not granted",
            hint=f"add {flag}" if flag else f"remove {rule}",
            operation=operation,
            rule=rule,
            flag=flag,
        )
        self.operation = operation
        self.rule = rule


class LimitExceeded(RunnerError):
    """
    Raised, or reported as a delivery's failure, when a bound was met.

    Args:
        limit: Name of the bound, with its unit (`fuel`, `timeout_ms`, `memory_bytes`).
        value: How much was used or asked for, in that unit.
        bound: The bound, in that unit.
        flag: The command-line flag that raises the bound, or `None`.
    """

    kind = "limit"
    exit_code = 4

    def __init__(self, limit: str, value: int, bound: int, *, flag: str | None = None) -> None:
        super().__init__(
            f"limit {limit} exceeded: {value} of {bound}",
            hint=f"raise it with {flag}" if flag else None,
            limit=limit,
            value=value,
            bound=bound,
        )
        self.limit = limit
        self.value = value
        self.bound = bound


class FuelExhausted(LimitExceeded):
    """
    Reported when a delivery used up its fuel; deterministic, so it replays identically.
    """

    def __init__(self, bound: int) -> None:
        super().__init__("fuel", bound, bound, flag="--max-fuel")


class DeadlineExceeded(LimitExceeded):
    """
    Reported when a delivery overran its wall time.

    Args:
        limit: `timeout_ms` counts only the guest's own execution, host waits excluded;
            `deadline_ms` counts everything.
        value_ms: Wall time used.
        bound_ms: Wall time allowed.
    """

    def __init__(self, limit: str, value_ms: int, bound_ms: int) -> None:
        flag = "--timeout" if limit == "timeout_ms" else "--deadline"
        super().__init__(limit, value_ms, bound_ms, flag=flag)


class MemoryExceeded(LimitExceeded):
    """
    Raised when a module starts with more memory and tables than the limit allows.
    """

    def __init__(self, value_bytes: int, bound_bytes: int) -> None:
        super().__init__("memory_bytes", value_bytes, bound_bytes, flag="--max-memory")


class HostExhausted(RunnerError):
    """
    Raised when this process can hold no more instances: address space or memory maps ran out.

    Args:
        problem: What the engine or the system said.
    """

    kind = "limit"
    exit_code = 4

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"this process can hold no more instances: {problem}",
            hint="raise vm.max_map_count, or spread instances over more processes",
        )


class GuestError(RunnerError):
    """
    The guest failed; the host and the instance live on.
    """

    kind = "guest"
    exit_code = 1


class GuestReturnedError(GuestError):
    """
    Reported when the guest answered a delivery with `agent.fail`.

    Args:
        message: The guest's own message. Untrusted text: scrub before showing it.
        data: The guest's own payload, or `None`.
    """

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message, data=data)
        self.data = data


class GuestTrapped(GuestError):
    """
    Reported when WebAssembly trapped.

    Args:
        trap: Short name of the trap, such as `unreachable` or `stack_overflow`.
        frames: Function names or indices, innermost first. Untrusted text.
    """

    kind = "trap"
    exit_code = 5

    def __init__(self, trap: str, frames: tuple[str, ...] = ()) -> None:
        where = f" in {frames[0]}" if frames else ""
        super().__init__(f"guest trapped: {trap}{where}", trap=trap, frames=list(frames))
        self.trap = trap
        self.frames = frames


class ProtocolViolation(GuestError):
    """
    Reported when the guest broke the ABI in a way that no status can answer.

    Args:
        rule: Name of the rule, such as `stalled`.
        message: What the guest did.
    """

    kind = "protocol"
    exit_code = 5

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message, rule=rule)
        self.rule = rule


class ArtifactError(RunnerError):
    """
    An input file is not acceptable; nothing of it has run.
    """

    kind = "artifact"
    exit_code = 7


class ModuleRejected(ArtifactError):
    """
    Raised when admission refuses a module before any of it runs.

    Args:
        rule: Stable name of the rule, such as `import-unknown`.
        item: The import, export, global, table, function or section at fault.
        problem: What is wrong with it.
        fix: What would make it acceptable.
    """

    def __init__(self, rule: str, item: str, problem: str, fix: str) -> None:
        super().__init__(f"module refused: {item}: {problem}", hint=fix, rule=rule, item=item)
        self.rule = rule
        self.item = item


class AgentInvalid(ArtifactError):
    """
    Raised when an agent's folder or package is not well formed.

    Args:
        path: The folder or file.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {problem}", hint=hint, path=path)


class SnapshotCorrupt(ArtifactError):
    """
    Raised when a snapshot's bytes do not agree with themselves; memory was not touched.

    Args:
        problem: Which check failed.
        path: The file, when it came from one.
    """

    def __init__(self, problem: str, *, path: str | None = None) -> None:
        where = f"{path}: " if path else ""
        super().__init__(
            f"{where}snapshot is damaged: {problem}",
            hint="use another copy; a snapshot can't be repaired",
            path=path,
        )


class SnapshotIncompatible(ArtifactError):
    """
    Raised when a sound snapshot can't be restored here; memory was not touched.

    Args:
        field: What differs, such as `format_version` or `code_digest`.
        expected: What this host or agent has.
        found: What the snapshot names.
    """

    def __init__(self, field: str, expected: str, found: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"snapshot does not fit: {field} is {found}, expected {expected}",
            hint=hint,
            field=field,
            expected=expected,
            found=found,
        )
        self.field = field


class BuildFailed(ArtifactError):
    """
    Raised when a compiler refused the agent's source.

    Args:
        path: The agent's folder.
        output: The compiler's own words.
    """

    def __init__(self, path: str, output: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: build failed\n{output}".rstrip(), hint=hint, path=path)


class EffectError(RunnerError):
    """
    The outside failed while the host worked for an agent.
    """

    kind = "upstream"
    exit_code = 8


class ProviderError(EffectError):
    """
    Raised when a model provider failed.

    Args:
        provider: Name of the provider.
        message: What it said or did. Untrusted text.
        status: Its HTTP status, when there was one.
        retryable: Whether the same request may succeed later.
        retry_after_ms: How long it asked to be left alone, when it did.
    """

    def __init__(
        self,
        provider: str,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(
            f"provider {provider}: {message}",
            provider=provider,
            status=status,
            retryable=retryable,
            retry_after_ms=retry_after_ms,
        )
        self.provider = provider
        self.status = status
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms


class Interrupted(RunnerError):
    """
    Reported when a person or a signal stopped the work; the instance is as before the delivery.
    """

    kind = "interrupted"
    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class InternalError(RunnerError):
    """
    A bug of ours; please report it with the traceback that `-vv` shows.
    """
