"""
Where the guest SDK lies: beside the package in a checkout, inside it in an installed wheel.
"""

from __future__ import annotations

import hashlib
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


def sdk_digest() -> bytes:
    """
    Digest of the C SDK: an agent that was compiled with another has to be compiled again.
    """
    root = sdk_root() / "c"
    total = hashlib.sha256()
    for path in sorted([*root.glob("include/*.h"), *root.glob("src/*.[ch]")]):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.digest()
