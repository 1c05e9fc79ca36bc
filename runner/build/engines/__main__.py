"""
Make the engines and put them, with the notices of their licences, into a directory.

    python -m runner.build.engines DIR

What a wheel has inside, and what `RUNNER_ENGINES` may name on a machine that can't make them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from runner.build.engines import ENGINE_LANGUAGES, fetch_problem, make_engine, recipe_of
from runner.cache import BlobCache, default_cache_root
from runner.errors import RunnerError
from runner.files import write_whole

_USAGE: Final = 2


def main(arguments: list[str]) -> int:
    """
    Make what can be made here; returns the exit code.
    """
    if len(arguments) != 1 or arguments[0].startswith("-"):
        _say("usage: python -m runner.build.engines DIR")
        return _USAGE
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    cache = BlobCache(default_cache_root())
    for language in ENGINE_LANGUAGES:
        recipe = recipe_of(language)
        problem = fetch_problem(recipe.source)
        if problem is not None:
            _say(f"left out: {recipe.name}: {problem}")
            continue
        try:
            write_whole(folder / f"{language}.wasm", make_engine(language, cache, _say))
            write_whole(folder / f"{language}.notices.txt", recipe.notices().encode())
        except RunnerError as error:
            _say(f"{recipe.name}: {error.message}")
            return error.exit_code
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
