"""
The interpreters that JavaScript and Python agents run on: WebAssembly modules, made from published sources.

    recipe (what goes in) -> fetch (by digest) -> compile (zig) -> store (by the digest of what went in)

An installation from a wheel has them inside. In a checkout each is made once, when it is first needed.
"""

from runner.build.engines.fetch import fetch_problem
from runner.build.engines.recipe import ENGINE_LANGUAGES, EngineLanguage, recipe_of
from runner.build.engines.store import engine_key, engine_module, is_made, make_engine, prebuilt_module

__all__ = [
    "ENGINE_LANGUAGES",
    "EngineLanguage",
    "engine_key",
    "engine_module",
    "fetch_problem",
    "is_made",
    "make_engine",
    "prebuilt_module",
    "recipe_of",
]
