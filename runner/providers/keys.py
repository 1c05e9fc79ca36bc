"""
Keys of providers: one file of the user's, and environment variables.

A key is bound to an origin when it is stored, and goes nowhere else, whatever a profile says later. One that
is stored owns its provider: when it can't be used that is an error, never a reason to look for another.

Input: the file is the user's; it is refused when others could have read it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from runner.cache.lock import hold
from runner.errors import ConfigError, KeyRefused, StateUnusable, UsageError
from runner.files import PRIVATE_DIRECTORY_MODE, find_exposure, is_ours, write_whole
from runner.package.fields import FieldProblem, Fields, matching, text
from runner.providers.origin import Endpoint, Key, Origin, parse_origin
from runner.providers.profiles import BUILT_IN, Profile
from runner.units import KIB, MIB

KEYS_FILE: Final = "keys.json"

MAX_KEY_BYTES: Final = 8 * KIB
_MAX_FILE_BYTES: Final = 1 * MIB
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# What may stand in a header, and no space: one that slipped in with the paste is an error.
_KEY: Final = re.compile(r"[!-~]{1,8192}", re.ASCII)
_KEY_KIND: Final = matching(_KEY, "a key")


class KeyFile:
    """
    The stored keys.

    Args:
        directory: The user's own directory of settings.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / KEYS_FILE

    def read(self) -> dict[str, Key]:
        """
        The keys by provider; none when there is no file.

        Raises:
            StateUnusable: If others could have read or changed it.
            ConfigError: If it does not say what it must.
        """
        data = self._bytes()
        if data is None:
            return {}
        try:
            return _decode(data)
        except FieldProblem as error:
            raise ConfigError(str(self.path), error.key or None, error.problem) from None
        except (ValueError, RecursionError):
            # Not as a cause: what it says quotes what it read.
            raise ConfigError(str(self.path), None, "not valid JSON") from None

    def set(self, name: str, value: str, origin: Origin) -> None:
        """
        Store a key for a provider, bound to an origin; what was stored for it is gone.

        Raises:
            UsageError: If it is no key.
        """
        if not _KEY.fullmatch(value):
            msg = "that is no key: a key is one word of plain characters"
            raise UsageError(msg)
        self._make_directory()
        with hold(self.path.with_suffix(".lock")):
            self._write({**self.read(), name: Key(value, origin)})

    def remove(self, name: str) -> None:
        """
        Forget a provider's key.

        Raises:
            UsageError: If there is none.
        """
        missing = f"no key is stored for {name}"
        if name not in self.read():
            raise UsageError(missing, hint="list them with runner keys list")
        with hold(self.path.with_suffix(".lock")):
            kept = self.read()
            kept.pop(name, None)
            self._write(kept)

    def _write(self, keys: Mapping[str, Key]) -> None:
        rows = {name: {"key": key.value, "origin": str(key.origin)} for name, key in sorted(keys.items())}
        data = json.dumps({"version": 1, "keys": rows}, indent=2) + "\n"
        write_whole(self.path, data.encode())

    def _make_directory(self) -> None:
        with suppress(FileExistsError):
            self._directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True)
        self._check_directory()

    def _check_directory(self) -> None:
        exposure = find_exposure(self._directory)
        if exposure is not None:
            hint = exposure.fix or "use a directory of your own"
            raise StateUnusable(str(self._directory), exposure.problem, hint=hint)

    def _bytes(self) -> bytes | None:
        try:
            handle = os.open(self.path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
        except FileNotFoundError:
            return None
        except OSError as error:
            hint = "make it a file of your own"
            raise StateUnusable(str(self.path), f"can't be read: {error.strerror}", hint=hint) from None
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise StateUnusable(str(self.path), "is not a file", hint="remove it")
            if os.name != "nt" and (status.st_mode & _OTHERS or not is_ours(status)):
                problem = "can be read by other users"
                hint = f"chmod 600 {self.path}, and make new keys: others may have these"
                raise StateUnusable(str(self.path), problem, hint=hint)
            self._check_directory()
            return file.read(_MAX_FILE_BYTES)


def _decode(data: bytes) -> dict[str, Key]:
    with Fields(json.loads(data)) as fields:
        if fields.required("version", _version) != 1:
            raise FieldProblem("version", "expected 1")
        rows = fields.required("keys", _rows)
    keys: dict[str, Key] = {}
    for name, row in rows.items():
        with Fields(row, f"keys.{name}") as inner:
            value = inner.required("key", _key)
            origin = inner.required("origin", _origin)
        keys[name] = Key(value, origin)
    return keys


def _version(value: object, at: str) -> int:
    if type(value) is not int:
        raise FieldProblem(at, "expected 1")
    return value


def _rows(value: object, at: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FieldProblem(at, "expected an object")
    return value


def _key(value: object, at: str) -> str:
    try:
        return _KEY_KIND(value, at)
    except FieldProblem:
        # Not what was found there: it may be a key all the same.
        raise FieldProblem(at, "expected a key") from None


def _origin(value: object, at: str) -> Origin:
    try:
        return parse_origin(text(value, at))
    except FieldProblem:
        raise
    except ValueError as error:
        raise FieldProblem(at, str(error)) from error


def endpoint_of(profile: Profile, stored: Mapping[str, Key], environ: Mapping[str, str]) -> Endpoint:
    """
    Where a provider is, with the key that may be sent there.

    Args:
        profile: The provider.
        stored: Stored keys by provider.
        environ: Environment variables.

    Raises:
        KeyRefused: If its key is bound elsewhere, can't be sent safely, or is missing where one is needed.
    """
    here = profile.address.origin
    key, where = stored.get(profile.name), "the key stored"
    if key is None:
        key, where = _from_environment(profile, environ)
    if key is None:
        if not profile.needs_key:
            return Endpoint(profile.address)
        variable = f", or set {profile.api_key_env}" if profile.api_key_env else ""
        raise KeyRefused(
            profile.name, f"has no key for {here}", hint=f"runner keys set {profile.name}{variable}"
        )
    if key.origin != here:
        raise KeyRefused(
            profile.name,
            f"is at {here}, and {where} for it is bound to {key.origin}",
            hint=f"runner keys set {profile.name} binds a key to {here}",
        )
    if not here.is_private:
        raise KeyRefused(
            profile.name, f"is at {here}, where anybody on the way could read its key", hint="use https"
        )
    return Endpoint(profile.address, key)


def _from_environment(profile: Profile, environ: Mapping[str, str]) -> tuple[Key | None, str]:
    """
    The key in the profile's variable. The user's own file names both, so that is where it is bound to; one
    that everybody calls by that name is bound to whom the name means.
    """
    variable = profile.api_key_env
    value = environ.get(variable, "").strip() if variable else ""
    if not value:
        return None, ""
    if not _KEY.fullmatch(value):
        raise KeyRefused(
            profile.name, f"has no key in {variable}: what is there is none", hint="set it again"
        )
    owner = next((known for known in BUILT_IN.values() if known.api_key_env == variable), None)
    origin = owner.address.origin if owner else profile.address.origin
    return Key(value, origin), f"the key in {variable}"
