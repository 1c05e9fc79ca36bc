"""
Every error that `runner` raises on purpose.

    RunnerError                kind, exit code, hint, details
    ├─ UsageError              wrong arguments or configuration                  usage           2
    │  ├─ ConfigError          a file of the user's is wrong: names file and key
    │  ├─ KeyRefused           a provider has no key that may be sent to it
    │  ├─ StateUnusable        a state directory can't be used: names it and what to do
    │  ├─ InstanceUnknown      no instance of that name
    │  ├─ InstanceExists       the name is taken
    │  ├─ InstanceBusy         another process has it open for writing: names its pid
    │  └─ StaleWriter          somebody else wrote to its journal meanwhile
    ├─ Denied                  a grant said no                                   denied          3
    ├─ LimitExceeded           a bound was met: names it and both numbers        limit           4
    │  ├─ FuelExhausted        the delivery's instructions ran out
    │  ├─ DeadlineExceeded     the delivery's wall time ran out
    │  ├─ MemoryExceeded       more linear memory or tables than allowed
    │  ├─ StateFull            a state directory is as large as it may be
    │  └─ BudgetExceeded       what may be spent on models is spent                budget          4
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
    │  ├─ BuildFailed          a compiler refused the agent's source
    │  ├─ SourceRejected       a module of an agent is wrong: names file, line and column
    │  ├─ JournalCorrupt       a state's bytes do not agree with themselves: names instance and record
    │  ├─ JournalPoisoned      an earlier record could not be written, so no later one may be
    │  ├─ StateTooNew          a state was written by a later runner: names both versions
    │  └─ DiskFailed           the disk is full or broken
    ├─ EffectError             the outside failed                                upstream        8
    │  └─ ProviderError        a model provider failed
    │     ├─ ContextOverflow    the conversation is longer than the model can read
    │     └─ RequestUnsupported the model can't be asked that; nothing was sent
    ├─ NeedsDecision           waits for a person; not a failure                 needs_decision  6
    │  ├─ ApprovalPending      a call was neither allowed nor denied yet
    │  └─ EffectUncertain      an effect started, and nobody knows whether it happened
    ├─ Nondeterminism          a replay differs from its record                  nondeterminism  9
    ├─ RecordedFailure         a failure read back from a journal                as recorded
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

    def say_where(self, place: str) -> None:
        """
        Put before the message where it happened, for who raises an error on that knows only what happened.
        """
        self.message = f"{place}: {self.message}"
        self.args = (self.message,)

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


class KeyRefused(UsageError):
    """
    Raised when a provider has no key that may be sent to it; nothing was sent.

    Args:
        provider: Name of the provider.
        problem: Why, to follow its name: where it is, and where the key may go.
    """

    def __init__(self, provider: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"provider {provider} {problem}", hint=hint, provider=provider)


class StateUnusable(UsageError):
    """
    Raised when a state directory can't be used; nothing in it has changed.

    Args:
        path: The directory.
        problem: What is wrong with it.
        hint: What to do.
    """

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(f"state {path} {problem}", hint=hint, path=path)


class InstanceUnknown(UsageError):
    """
    Raised when there is no instance of that name.

    Args:
        name: The name.
        nearest: Names that there are and that may have been meant.
    """

    def __init__(self, name: str, nearest: tuple[str, ...] = ()) -> None:
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "list them with runner ps"
        super().__init__(
            f"there is no instance {name}", hint=hint, instance=name, nearest=list(nearest) or None
        )


class InstanceExists(UsageError):
    """
    Raised when an instance is to be made and the name is taken.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is an instance {name} already",
            hint=f"choose another name, or remove it with runner rm {name}",
            instance=name,
        )


class InstanceBusy(UsageError):
    """
    Raised when another holder has the instance open for writing; a holder that died is none.

    Args:
        name: The instance.
        pid: Process of the holder, or `None` when it did not say.
    """

    def __init__(self, name: str, pid: int | None) -> None:
        who = "another process" if pid is None else f"process {pid}"
        super().__init__(
            f"instance {name} is in use by {who}", hint="wait for it, or stop it", instance=name, pid=pid
        )
        self.pid = pid


class StaleWriter(UsageError):
    """
    Raised when a journal has records that its writer does not know; nothing was written.

    Args:
        name: The instance.
        expected: Records that the writer knows of.
        found: Records that there are.
    """

    def __init__(self, name: str, expected: int, found: int) -> None:
        super().__init__(
            f"journal of {name} was written by somebody else: {expected} records expected, {found} found",
            hint="open the instance again",
            instance=name,
            expected=expected,
            found=found,
        )


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


class StateFull(LimitExceeded):
    """
    Raised when a state directory is as large as it may be; nothing was written.

    Args:
        path: The directory.
        value_bytes: Size of its database.
        bound_bytes: The most that it may have.
    """

    def __init__(self, path: str, value_bytes: int, bound_bytes: int) -> None:
        super().__init__("state_bytes", value_bytes, bound_bytes, flag="--max-state")
        self.hint = f"make room in {path} with runner gc, or raise it with --max-state"
        self.details["path"] = path


class BudgetExceeded(LimitExceeded):
    """
    Reported when an agent gave up because its budget did not allow what it needed; nothing was asked for it.

    Args:
        limit: Which bound: `tokens`, `usd_pico`, `calls` or `wall_ms`.
        value: What would have been spent.
        bound: The bound.
        said: The agent's own words. Untrusted text: scrub before showing it.
    """

    kind = "budget"

    def __init__(self, limit: str, value: int, bound: int, *, said: str | None = None) -> None:
        super().__init__(limit, value, bound)
        self.message = f"budget {limit} is used up: {value} of {bound}"
        self.args = (self.message,)
        self.hint = "a new instance can be given a larger --budget"
        if said is not None:
            self.details["said"] = said


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


class SourceRejected(ArtifactError):
    """
    Raised when a module of an agent in an interpreted language does not compile, imports what it can't have,
    or fails while it is loaded.

    Args:
        file: The module's file, as a path inside the agent's folder.
        problem: What is wrong. May quote the agent's source: scrub before showing it.
        line: Where, from 1, or `None` when no place is known.
        column: Where in the line, from 1, or `None`.
        stack: Where the agent was when it failed, or `None`. Untrusted text.
    """

    def __init__(
        self,
        file: str,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        stack: str | None = None,
        hint: str | None = None,
    ) -> None:
        place = ":".join([file, *(str(part) for part in (line, column if line else None) if part)])
        super().__init__(
            f"{place}: {problem}",
            hint=hint,
            file=file,
            line=line,
            column=column,
            problem=problem,
            stack=stack,
        )


class JournalCorrupt(ArtifactError):
    """
    Raised when what a state directory holds does not agree with itself. Nothing was changed or made anew.

    Args:
        name: The instance, or the state directory when it is the whole that is damaged.
        seq: Sequence number of the record at fault, or `None` when it is none or not known.
        problem: What is wrong.
    """

    def __init__(self, name: str, seq: int | None, problem: str) -> None:
        where = "" if seq is None else f" at record {seq}"
        super().__init__(
            f"journal of {name} is damaged{where}: {problem}",
            hint="put back a copy of the whole state directory",
            instance=name,
            seq=seq,
        )
        self.seq = seq


class JournalPoisoned(ArtifactError):
    """
    Raised when a record follows one that could not be written, or of which nobody knows whether it was.

    Args:
        name: The instance.
        cause: Why the earlier record was not written.
    """

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(
            f"journal of {name} takes no more records, because one before was not written: {cause}",
            hint="open the instance again",
            instance=name,
        )


class StateTooNew(ArtifactError):
    """
    Raised when a state directory was written by a later runner; nothing in it has changed.

    Args:
        path: The directory.
        found: Version of what it holds.
        known: Latest version that this runner knows.
    """

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"state {path} has version {found}, this runner knows versions up to {known}",
            hint="use the runner that wrote it, or a later one",
            path=path,
            found=found,
            known=known,
        )


class DiskFailed(ArtifactError):
    """
    Raised when the disk took or gave no more. What was reported as written is there.

    Args:
        path: The directory.
        problem: What the system said.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"state {path}: {problem}", hint="free some space, or move it to another disk", path=path
        )


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


class ContextOverflow(ProviderError):
    """
    Raised when a conversation is longer than the model can read; a shorter one may be answered.

    Args:
        provider: Name of the provider.
        status: Its HTTP status, when there was one.
    """

    def __init__(self, provider: str, *, status: int | None = None) -> None:
        super().__init__(provider, "the conversation is longer than the model can read", status=status)


class RequestUnsupported(ProviderError):
    """
    Raised when a provider can't be asked what a request asks; nothing was sent.

    Args:
        provider: Name of the provider.
        feature: What it has not, such as `effort minimal`.
    """

    def __init__(self, provider: str, feature: str) -> None:
        super().__init__(provider, f"has no {feature}")
        self.feature = feature
        self.details["feature"] = feature


class NeedsDecision(RunnerError):
    """
    Not a failure: the work waits for a person, durably; the process may end.

    Args:
        instance: Name of the instance.
        calls: The calls in question, by number.
    """

    kind = "needs_decision"
    exit_code = 6

    def __init__(self, instance: str, calls: tuple[int, ...], message: str, hint: str) -> None:
        super().__init__(message, hint=hint, instance=instance, calls=list(calls))
        self.calls = calls


class ApprovalPending(NeedsDecision):
    """
    Raised when an instance can't go on before a person has allowed or denied a call.
    """

    def __init__(self, instance: str, calls: tuple[int, ...]) -> None:
        listed = ", ".join(map(str, calls))
        super().__init__(
            instance,
            calls,
            f"{instance} waits for approval of call {listed}",
            f"runner approve {instance} {calls[0]} && runner resume {instance}",
        )


class EffectUncertain(NeedsDecision):
    """
    Raised when effects were started and nobody knows whether they happened: nothing runs before a person has
    ruled on each.
    """

    def __init__(self, instance: str, calls: tuple[int, ...]) -> None:
        listed = ", ".join(map(str, calls))
        super().__init__(
            instance,
            calls,
            f"{instance} has a call whose effect is uncertain: {listed}",
            f"find out, then: runner resolve {instance} {calls[0]} --rerun, --done RESULT or --abandon",
        )


class Nondeterminism(RunnerError):
    """
    Raised when a replay differs from its record; the instance can't go on from it.

    Args:
        seq: Sequence number of the record.
        what: Field of the slice that differs.
        recorded: What the journal says.
        observed: What happened now.
    """

    kind = "nondeterminism"
    exit_code = 9

    def __init__(self, seq: int, what: str, recorded: str, observed: str) -> None:
        super().__init__(
            f"replay differs at record {seq}: {what} was {recorded[:200]}, now {observed[:200]}",
            hint="the journal, the agent or the engine is not what it was",
            seq=seq,
            what=what,
            recorded=recorded,
            observed=observed,
        )
        self.seq = seq


class RecordedFailure(RunnerError):
    """
    A failure read back from a journal; says what the recorded one said.

    Args:
        wire: Its wire form.
    """

    def __init__(self, wire: dict[str, Any]) -> None:
        super().__init__(str(wire.get("message", "")), hint=wire.get("hint"), **wire.get("details", {}))
        self.wire = wire

    def to_wire(self) -> dict[str, Any]:
        return self.wire


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
