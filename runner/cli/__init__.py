"""
The command line: argv in, one result on stdout, everything else on stderr, a telling exit code.

`main` is the console script. Nothing heavy is imported until a verb needs it: `runner --help` knows
nothing of the engine, of the model SDKs or of an event loop, and a test holds that.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """
    Run one command and leave the process with its exit code.

    Args:
        arguments: The words after `runner`; the process's own when absent.
    """
    try:
        # Imported here, so that Ctrl-C during the imports ends like Ctrl-C at any other time.
        from runner.cli.app import run_command_line  # noqa: PLC0415

        sys.exit(run_command_line(sys.argv[1:] if arguments is None else list(arguments)))
    except KeyboardInterrupt:
        sys.exit(130)
