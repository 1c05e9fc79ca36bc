"""
TypeScript to JavaScript: types are taken away by a library that is installed as an extra, inside a sandbox.
"""

from __future__ import annotations

from importlib.util import find_spec

from runner.errors import SourceRejected, UsageError

_LIBRARY = "quickjs_rs"


def strip_types(name: str, text: str) -> str:
    """
    JavaScript from TypeScript.

    Does not guarantee that statements keep their lines.

    Raises:
        UsageError: If the library is not installed.
        SourceRejected: If the text is not TypeScript.
    """
    if find_spec(_LIBRARY) is None:
        raise UsageError(
            f"{name} is TypeScript, and what takes its types away is not installed",
            hint="pip install 'wasm-agent-runner[typescript]', or write JavaScript",
        )
    # Imported here: an extra, and it brings an engine of its own.
    from quickjs_rs.transforms import transform_source  # noqa: PLC0415

    try:
        return str(transform_source(name, text))
    # Its own error is a kind of this one, in a module that it keeps to itself.
    except RuntimeError as error:
        raise SourceRejected(name, str(error)) from error
