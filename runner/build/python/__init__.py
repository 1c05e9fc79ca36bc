"""
Python agents: modern syntax, for an engine that compiles an older one.

The host parses the author's text and rewrites what MicroPython lacks into what it has, with calls of helpers
of the runtime (`guest_sdk/python/lib/_rt.py`) where a value must decide. Each line of the result is known by
the author's line, so that tracebacks are his. Rejected: a compiler of our own to MicroPython's byte code (its
format changes with every release), and running the author's text through CPython's compiler (it would be
trusted).
"""

from runner.build.python.imports import Import, available_modules
from runner.build.python.lowering import Lowered, lower_module

__all__ = ["Import", "Lowered", "available_modules", "lower_module"]
