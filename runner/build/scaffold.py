"""
`new_agent`: a folder with a first agent that works, to be changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from runner.build.sdk import sdk_root
from runner.errors import UsageError
from runner.package.manifest import default_manifest

TemplateLanguage = Literal["js", "python", "c", "wat"]
TEMPLATE_LANGUAGES: Final[tuple[TemplateLanguage, ...]] = ("js", "python", "c", "wat")

_NAME_MARK: Final = "@NAME@"


def new_agent(folder: Path, language: TemplateLanguage) -> tuple[Path, ...]:
    """
    Write a new agent into `folder`, which must not exist or be empty; its name is made from the folder's.

    Returns:
        The files written.

    Raises:
        UsageError: If the folder holds something, or can't be written.
    """
    name = default_manifest(folder.resolve(), language).name
    template = sdk_root() / language / "template"
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            msg = f"{folder}: not empty"
            raise UsageError(msg, hint="name a folder that does not exist yet")
        # An installer that compiles what it installs leaves a folder there.
        for source in sorted(path for path in template.iterdir() if path.is_file()):
            path = folder / source.name
            text = source.read_text(encoding="utf-8").replace(_NAME_MARK, name)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        msg = f"{folder}: can't be written: {(error.strerror or str(error)).lower()}"
        raise UsageError(msg, hint="name another folder") from error
    return tuple(written)
