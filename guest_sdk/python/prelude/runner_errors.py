# Errors: those that the host answers with, and how any error is told to the host.

import _host

_ERROR = 3

# For a file of the agent's: the author's line of each line that was compiled, two bytes each.
author_lines = {}


class HostError(Exception):
    """What the host answers instead of a value; `kind` says which way it failed."""

    def __init__(self, message, kind="upstream"):
        super().__init__(message)
        self.kind = kind


_LOCAL = {
    -3: ("denied", "{} is not granted"),
    -4: ("limit", "{}: a limit of this instance was met"),
    -5: ("unsupported", "{} is not available here"),
    -2: ("invalid", "{}: the request has a wrong shape"),
}


def refused(operation, status):
    """The error of an import that answered with a negative status."""
    kind, text = _LOCAL.get(status, ("upstream", "{} failed"))
    return HostError(text.format(operation), kind)


def answered(operation, status, payload):
    """The error of a wake."""
    if isinstance(payload, dict) and "message" in payload:
        return HostError(payload["message"], payload.get("kind", "upstream"))
    if isinstance(payload, MemoryError):
        return HostError("{}: no memory for the answer".format(operation), "limit")
    return refused(operation, status)


def frames(error):
    """The agent's own frames, outermost first: file, author's line, function."""
    found = []
    for file, line, name in _host.traceback(error):
        if file.startswith("<") and file != "<string>":
            continue
        lines = author_lines.get(file)
        if lines is not None and 0 < line <= len(lines) // 2:
            line = lines[2 * line - 2] | lines[2 * line - 1] << 8
        found.append((file, line, name))
    found.reverse()
    return found


def text_of(error):
    """What an error says, whatever its class does."""
    try:
        return str(error)
    except Exception:
        return "an error that can't be shown"


def title(error):
    """The error as one line, as Python shows it."""
    name, text = type(error).__name__, text_of(error)
    return "{}: {}".format(name, text) if text else name


def _chain(error):
    """The errors that led to it, oldest first, each with the words that join it to the next."""
    chain = [(error, None)]
    while len(chain) < 8:
        older, words = getattr(error, "__cause__", None), _CAUSE
        if older is None and not getattr(error, "__suppress_context__", False):
            older, words = getattr(error, "__context__", None), _CONTEXT
        if not isinstance(older, BaseException) or any(older is seen for seen, _ in chain):
            break
        chain.append((older, words))
        error = older
    chain.reverse()
    return chain


_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"


def stack(error):
    """The error as Python shows it when nobody catches it."""
    lines = []
    for one, words in _chain(error):
        found = frames(one)
        if found:
            lines.append("Traceback (most recent call last):")
        for file, line, name in found:
            lines.append('  File "{}", line {}, in {}'.format(file, line, name or "<module>"))
        lines.append(title(one))
        if words:
            lines.append(words)
    return "\n".join(lines)


def data(error):
    """The error as data."""
    told = {"name": type(error).__name__, "message": text_of(error), "stack": stack(error)}
    found = frames(error)
    if found:
        told["file"], told["line"] = found[-1][0], found[-1][1]
    if isinstance(error, HostError):
        told["kind"] = error.kind
    return told


def log_error(words, error):
    """An error that has nobody to tell but the operator."""
    _host.log(_ERROR, words + "\n" + stack(error))
