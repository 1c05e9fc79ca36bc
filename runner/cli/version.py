"""
What `runner --version` says.
"""

from __future__ import annotations

import platform
from importlib import metadata


def version_line(distribution: str) -> str:
    """
    Versions of ourselves, of the engine and of Python, in one line for reports.
    """
    engine = f"wasmtime {_version('wasmtime')}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    machine = f"{platform.system().lower()} {platform.machine()}"
    return f"runner {_version(distribution)} ({engine}, {python}, {machine})"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
