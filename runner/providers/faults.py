"""
What a provider's failure means: whether it may be tried again, and what may be said of it.

Input: statuses, headers and bodies, written by strangers. A message that is built here is read by guests: it
has neither key nor address in it, whoever put them there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from runner.errors import ContextOverflow, ProviderError
from runner.providers.origin import Endpoint
from runner.providers.wire import Malformed, Node, peek, plain

RETRYABLE_STATUSES: Final = frozenset({408, 409, 425, 429, *range(500, 600)})

_RETRYABLE_KINDS: Final = frozenset(
    {
        "overloaded_error",
        "rate_limit_error",
        "api_error",
        "timeout_error",
        "server_error",
        "rate_limit_exceeded",
    }
)
_OVERFLOW_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_OVERFLOW_WORDS: Final = re.compile(
    r"prompt is too long|maximum context length|context[ _](?:length|window|size)|too many (?:input )?tokens",
    re.IGNORECASE,
)
_OVERFLOW_STATUSES: Final = frozenset({None, 400, 413, 422, 500})
# What these say often quotes the key, or parts of it.
_SILENT_STATUSES: Final = frozenset({401, 403, 407})
_MAX_WORDS: Final = 300
_MAX_RETRY_AFTER_MS: Final = 86_400_000


def of_status(
    name: str, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, now_s: float
) -> ProviderError:
    """
    The failure that a response is whose status is none of success.

    Args:
        name: The provider's.
        endpoint: Nothing of it gets into the message.
        status: HTTP status.
        headers: With names in lower case.
        body: What there is of it.
        now_s: Now, by the wall clock: `Retry-After` may be a date.
    """
    error = error_in(peek(body))
    if 300 <= status < 400:  # noqa: PLR2004 - the class of redirects
        return ProviderError(name, f"HTTP status {status}: redirects are not followed", status=status)
    if _is_overflow(error, status):
        return ContextOverflow(name, status=status)
    words = "" if status in _SILENT_STATUSES else _words(endpoint, error)
    return ProviderError(
        name,
        f"HTTP status {status}" + (f": {words}" if words else ""),
        status=status,
        retryable=status in RETRYABLE_STATUSES,
        retry_after_ms=retry_after_ms(headers, now_s),
    )


def of_event(name: str, endpoint: Endpoint, error: Node) -> ProviderError:
    """
    The failure that an event of a stream speaks of.
    """
    if _is_overflow(error, None):
        return ContextOverflow(name)
    kind = _quiet(error, "type")
    code = _quiet(error, "code")
    words = _words(endpoint, error)
    return ProviderError(
        name,
        f"failed: {words}" if words else "failed",
        retryable=not {kind, code}.isdisjoint(_RETRYABLE_KINDS),
    )


def unreadable(name: str, error: Malformed) -> ProviderError:
    """
    The failure that malformed data is.
    """
    return ProviderError(name, f"sent {error.problem}")


def broken(name: str) -> ProviderError:
    """
    The failure of a connection that broke off.
    """
    return ProviderError(name, "the connection broke", retryable=True)


def unreached(name: str) -> ProviderError:
    """
    The failure of a connection that did not come about.
    """
    return ProviderError(name, "can't be reached", retryable=True)


def crashed(name: str, error: Exception) -> ProviderError:
    """
    The failure of an adapter, or of the library below it: whatever it said may quote what it was given.
    """
    return ProviderError(name, f"failed with {plain(type(error).__name__)}")


def error_in(body: Node) -> Node:
    """
    Where a body speaks of an error: in an object of its own, a text, or the whole.
    """
    inner = body.values.get("error")
    if isinstance(inner, dict):
        return Node(inner)
    return Node({"message": inner}) if isinstance(inner, str) else body


def retry_after_ms(headers: Mapping[str, str], now_s: float) -> int | None:
    """
    How long a response asks to be left alone, or `None` when it does not say so in an intelligible way.
    """
    asked_ms: float
    try:
        if "retry-after-ms" in headers:
            asked_ms = float(headers["retry-after-ms"])
        elif "retry-after" in headers:
            asked_ms = _after_s(headers["retry-after"], now_s) * 1000
        else:
            return None
        # Also refuses what is no number at all.
        return int(asked_ms) if 0 <= asked_ms <= _MAX_RETRY_AFTER_MS else None
    except (ValueError, TypeError, OverflowError):
        return None


def _after_s(text: str, now_s: float) -> float:
    try:
        return float(text)
    except ValueError:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)


def _is_overflow(error: Node, status: int | None) -> bool:
    if status not in _OVERFLOW_STATUSES:
        return False
    if {_quiet(error, "code"), _quiet(error, "type")} & _OVERFLOW_CODES:
        return True
    return _OVERFLOW_WORDS.search(_quiet(error, "message")) is not None


def _quiet(error: Node, key: str) -> str:
    value = error.values.get(key)
    return value if isinstance(value, str) else ""


def _words(endpoint: Endpoint, error: Node) -> str:
    """
    What was said, fit for anyone to read.
    """
    # Cut generously first and short at last: a key that the cut went through would not be found.
    said = _quiet(error, "message")[: 8 * _MAX_WORDS] or _quiet(error, "type")
    shown = "".join(char if char.isprintable() else " " for char in endpoint.redact(said))
    return " ".join(shown.split())[:_MAX_WORDS].removesuffix(".")
