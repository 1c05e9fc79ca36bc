"""
Which providers there are: the built-in ones, the user's file, and what a project's file may say.

Input: the user's file is theirs, and mistyped now and then. A project's file came with a folder from
anywhere: it may choose a model, and never where anything is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from runner.codec import Value
from runner.errors import ConfigError, UsageError
from runner.files import find_exposure, is_ours, read_whole
from runner.package.fields import FieldProblem, Fields, matching, one_of, text
from runner.providers.origin import Address, parse_address
from runner.providers.scripted import SCRIPTED_NAME
from runner.units import KIB

CONFIG_VARIABLE: Final = "RUNNER_CONFIG"
PROJECT_FILE: Final = Path("runner.toml")

Kind = Literal["anthropic", "openai", "compatible", "ollama"]
KINDS: Final[tuple[Kind, ...]] = ("anthropic", "openai", "compatible", "ollama")

_APPLICATION: Final = "runner"
_CONFIG_NAME: Final = "config.toml"
_MAX_FILE_BYTES: Final = 256 * KIB
_OTHERS_MAY_WRITE: Final = 0o022

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_MODEL: Final = matching(
    re.compile(r"[A-Za-z0-9_-]{1,64}/[A-Za-z0-9._:/@+-]{1,128}", re.ASCII),
    'a model such as "anthropic/some-model"',
)
_MODEL_THERE: Final = matching(
    re.compile(r"[A-Za-z0-9._:/@+-]{1,128}", re.ASCII), "a model's name at its provider"
)
_VARIABLE: Final = matching(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII), "the name of an environment variable, never a key"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """
    One provider by name.

    Attributes:
        name: As in `PROVIDER/MODEL`.
        kind: How to speak with it.
        address: Where it is.
        model: Its model for those who ask for `default`, or `None`.
        api_key_env: Environment variable that has its key, or `None`.
        fallback: `PROVIDER/MODEL` that answers when it is down, or `None`.
    """

    name: str
    kind: Kind
    address: Address
    model: str | None = None
    api_key_env: str | None = None
    fallback: str | None = None

    @property
    def needs_key(self) -> bool:
        """
        Whether nobody is let in there without one.
        """
        return self.kind in ("anthropic", "openai")


BUILT_IN: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(
            name="anthropic",
            kind="anthropic",
            address=parse_address("https://api.anthropic.com"),
            api_key_env="ANTHROPIC_API_KEY",
        ),
        Profile(
            name="openai",
            kind="openai",
            address=parse_address("https://api.openai.com/v1"),
            api_key_env="OPENAI_API_KEY",
        ),
        Profile(name="ollama", kind="ollama", address=parse_address("http://127.0.0.1:11434")),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What the files say together.

    Attributes:
        model: `PROVIDER/MODEL` of requests that name none, or `None`.
        profiles: Providers by name, the scripted one left out.
        source: The user's file, to name it in hints.
    """

    model: str | None = None
    profiles: Mapping[str, Profile] = field(default_factory=lambda: dict(BUILT_IN))
    source: Path


def config_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Where the user's settings and keys are.
    """
    return config_path(environ).parent


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """
    The user's file: `RUNNER_CONFIG`, or `config.toml` in the user's own directory.
    """
    named = environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs  # noqa: PLC0415 - only those who need it pay for it

    return platformdirs.user_config_path(_APPLICATION, appauthor=False) / _CONFIG_NAME


def load_settings(environ: Mapping[str, str] = os.environ, project: Path = PROJECT_FILE) -> Settings:
    """
    The user's settings, and what the project's file in the working directory says over them.

    Raises:
        ConfigError: If a file does not say what it must, or others could have written the user's; names file
            and key.
    """
    path = config_path(environ)
    settings = Settings(source=path)
    if path.exists():
        _refuse_exposed(path)
        settings = _read(path, settings, _user_settings)
    if project.exists():
        settings = _read(project, settings, _project_settings)
    return settings


def _refuse_exposed(path: Path) -> None:
    """
    It says where keys go.
    """
    status = path.stat()
    if os.name != "nt" and (status.st_mode & _OTHERS_MAY_WRITE or not is_ours(status)):
        raise ConfigError(str(path), None, "can be written by other users", hint=f"chmod 600 {path}")
    exposure = find_exposure(path.parent.resolve())
    if exposure is not None:
        raise ConfigError(str(path.parent), None, exposure.problem, hint=exposure.fix)


def _read(path: Path, settings: Settings, read: Any) -> Settings:
    # Imported here: most starts have no file.
    import tomllib  # noqa: PLC0415

    try:
        data = read_whole(path, _MAX_FILE_BYTES)
        merged: Settings = read(tomllib.loads(data.decode()), settings)
    except FieldProblem as error:
        raise ConfigError(str(path), error.key or None, error.problem) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), None, f"not valid TOML: {error}") from error
    return merged


def _user_settings(value: Value, settings: Settings) -> Settings:
    with Fields(value) as fields:
        model = fields.optional("model", _MODEL)
        tables = fields.optional("providers", _tables) or {}
    profiles = dict(settings.profiles)
    for name, table in tables.items():
        profiles[name] = _profile(name, table, BUILT_IN.get(name))
    for name, profile in profiles.items():
        other = (profile.fallback or "").partition("/")[0]
        if other and other not in profiles:
            raise FieldProblem(f"providers.{name}.fallback", f"no provider {other!r}")
    return replace(settings, model=model, profiles=profiles)


def _project_settings(value: Value, settings: Settings) -> Settings:
    with Fields(value) as fields:
        model = fields.optional("model", _MODEL)
        tables = fields.optional("providers", _tables) or {}
    profiles = dict(settings.profiles)
    for name, table in tables.items():
        at = f"providers.{name}"
        if name not in profiles:
            raise FieldProblem(at, f"a project can't add a provider; write it into {settings.source}")
        for key in table:
            if key != "model":
                problem = f"a project can't say where things are sent; write it into {settings.source}"
                raise FieldProblem(f"{at}.{key}", problem)
        with Fields(table, at) as inner:
            profiles[name] = replace(profiles[name], model=inner.required("model", _MODEL_THERE))
    return replace(settings, model=model or settings.model, profiles=profiles)


def _tables(value: Value, at: str) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise FieldProblem(at, "expected a table for each provider")
    for name, table in value.items():
        if not _NAME.fullmatch(name):
            raise FieldProblem(f"{at}.{name}", "a provider's name is letters, digits, - and _")
        if name == SCRIPTED_NAME:
            raise FieldProblem(f"{at}.{name}", "this provider is built in")
        if not isinstance(table, dict):
            raise FieldProblem(f"{at}.{name}", "expected a table")
    return value


def _profile(name: str, table: dict[str, Any], built_in: Profile | None) -> Profile:
    at = f"providers.{name}"
    with Fields(table, at) as fields:
        kind = fields.optional("kind", one_of(KINDS)) or (built_in.kind if built_in else None)
        if kind is None:
            raise FieldProblem(f"{at}.kind", "missing")
        address = fields.optional("base_url", _address)
        model = fields.optional("model", _MODEL_THERE)
        variable = fields.optional("api_key_env", _VARIABLE)
        fallback = fields.optional("fallback", _MODEL)
    own = next((known for known in BUILT_IN.values() if known.kind == kind), None)
    if address is None and own is None:
        raise FieldProblem(f"{at}.base_url", "missing")
    if address is not None and variable is None and own is not None and address.origin == own.address.origin:
        variable = own.api_key_env
    if address is None and own is not None:
        address = own.address
        variable = variable or own.api_key_env
    assert address is not None  # noqa: S101 - one of the two above
    return Profile(
        name=name, kind=kind, address=address, model=model, api_key_env=variable, fallback=fallback
    )


def _address(value: Value, at: str) -> Address:
    try:
        return parse_address(text(value, at))
    except FieldProblem:
        raise
    except ValueError as error:
        raise FieldProblem(at, str(error)) from error


def profile_of(settings: Settings, name: str) -> Profile:
    """
    The provider of that name.

    Raises:
        UsageError: If there is none.
    """
    if name not in settings.profiles:
        msg = f"no provider {name!r}"
        known = ", ".join([SCRIPTED_NAME, *sorted(settings.profiles)])
        raise UsageError(msg, hint=f"there are {known}; another is made in {settings.source}", provider=name)
    return settings.profiles[name]
