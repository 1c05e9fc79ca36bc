"""
Where the guest SDK lies: beside the package in a checkout, inside it in an installed wheel.
"""

from __future__ import annotations

from pathlib import Path

from runner.errors import InternalError


def sdk_root() -> Path:
    """
    The folder that holds `c/` and `wat/`.

    Raises:
        InternalError: If this installation has lost it.
    """
    package = Path(__file__).resolve().parents[1]
    for root in (package / "_sdk", package.parent / "guest_sdk"):
        if (root / "c" / "include" / "runner_abi.h").is_file():
            return root
    msg = f"the guest SDK is missing beside {package}"
    raise InternalError(msg, hint="install the package again")
