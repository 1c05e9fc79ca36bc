"""
Secrets by name: put in on the host's side, and taken out of all that goes back.

An agent never sees one. What it says can't name one either: markers are replaced in the operator's own
text, before anything of the agent's is put there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

_SHORTEST: Final = 4
"""
What is shorter is in too many words to be taken out of them.
"""

_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}", re.ASCII)


class SecretMissing(Exception):
    """
    Raised when a variable that a file speaks of is not set; its message is the name.
    """


class Redactor:
    """
    Takes known secrets out of texts, as they are and as a URL says them.

    Args:
        secrets: Name by value; what is shorter than four characters is left.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        spellings: dict[str, str] = {}
        for value, name in secrets.items():
            if len(value) >= _SHORTEST:
                spellings[value] = spellings[quote(value, safe="")] = f"***{name}***"
        self._spellings = spellings
        # The longest first: one secret may be the beginning of another.
        longest = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest))) if longest else None

    def text(self, text: str) -> str:
        """
        A text without them.
        """
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._spellings[found[0]], text)

    def value(self, value: Any) -> Any:
        """
        A payload without them, keys included.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def expand(text: str, environment: Mapping[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """
    A text with `${NAME}` and `${NAME:-default}` replaced from the environment.

    Returns:
        The text, and the values that came from the environment, each with its name.

    Raises:
        SecretMissing: If a variable without a default is not set.
    """
    known = os.environ if environment is None else environment
    used: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        value = known.get(found["name"])
        if value is None:
            if found["default"] is None:
                raise SecretMissing(found["name"])
            return str(found["default"])
        used[value] = found["name"]
        return value

    return _VARIABLE.sub(replace, text), used


def variables_in(texts: Iterable[str]) -> set[str]:
    """
    The variables that texts speak of.
    """
    return {found["name"] for text in texts for found in _VARIABLE.finditer(text)}
