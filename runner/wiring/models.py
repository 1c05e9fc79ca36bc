"""
Which models answer, from flags and files.
"""

from __future__ import annotations

import os
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runner.errors import ProviderError, UsageError
from runner.providers.keys import KeyFile, endpoint_of
from runner.providers.profiles import Profile, Settings, config_directory, load_settings, profile_of
from runner.providers.scripted import SCRIPTED_MODEL, SCRIPTED_NAME, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from runner.policy.grants import Grants
    from runner.providers.base import ModelRequest, Provider, StreamEvent
    from runner.providers.ollama import OllamaProvider
    from runner.providers.origin import Endpoint, Key
    from runner.providers.sdk import SdkProvider
    from runner.wiring.options import Options

_LIST_S: Final = 30.0

DEFAULT_MODEL: Final = "default"
"""
A provider's model for whoever names none.
"""


def model_of(options: Options) -> str:
    """
    `PROVIDER/MODEL` of requests that name none: the options', the files', or the scripted one.

    Raises:
        ConfigError: If a file is wrong.
    """
    return options.model or load_settings().model or SCRIPTED_MODEL


def provider_of(options: Options) -> ScriptedProvider:
    """
    The scripted provider, once it is clear that the model of choice can be asked: whose key is missing is
    told before anything begins.

    Raises:
        UsageError: If there is no such provider.
        KeyRefused: If it has no key that may be sent to it.
        ConfigError: If a file is wrong.
    """
    settings = load_settings()
    model = options.model or settings.model or SCRIPTED_MODEL
    name, slash, rest = model.partition("/")
    if not slash or not rest:
        msg = f"{model!r} is no model"
        raise UsageError(msg, hint=f"a model is PROVIDER/MODEL, as in {SCRIPTED_MODEL}")
    if name != SCRIPTED_NAME:
        _endpoint(profile_of(settings, name))
    return ScriptedProvider.from_file(options.script) if options.script else ScriptedProvider()


def providers_of(scripted: Mapping[str, ScriptedProvider], grants: Grants) -> dict[str, Provider]:
    """
    All providers of this host by name.

    Args:
        scripted: The scripted one, as long as there is one.
        grants: Decide who may answer for a provider that is down.

    Raises:
        ConfigError: If a file is wrong.
    """
    providers: dict[str, Provider] = dict(scripted)
    if not grants.allow or all(rule.selector == "scripted/*" for rule in grants.allow):
        # Nobody else can be asked, so nobody's files and keys are looked at.
        return providers
    settings = load_settings()
    for name, profile in settings.profiles.items():
        providers[name] = _LateProvider(settings, profile, grants)
    return providers


class _LateProvider:
    """
    A provider that is made when it is first asked: most never are.
    """

    def __init__(self, settings: Settings, profile: Profile, grants: Grants) -> None:
        self.name = profile.name
        self._settings = settings
        self._profile = profile
        self._grants = grants
        self._made: Provider | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if request.model == DEFAULT_MODEL:
            if self._profile.model is None:
                raise ProviderError(self.name, "has no model of its own; name one")
            request = replace(request, model=self._profile.model)
        if self._made is None:
            self._made = self._make()
        async with aclosing(self._made.stream(request)) as events:
            async for event in events:
                yield event

    def _make(self) -> Provider:
        from runner.providers.steady import SteadyProvider  # noqa: PLC0415 - only who is asked is needed

        try:
            inner = _adapter(self._profile, _endpoint(self._profile))
        except UsageError as error:
            # A guest hears of it; where a provider is, and what its key is called, is none of its business.
            raise ProviderError(
                self.name, "can't be used on this host: its key is missing or bound"
            ) from error
        return SteadyProvider(inner, fallback=self._fallback)

    def _fallback(self, model: str) -> Any:
        from runner.providers.steady import Fallback, SteadyProvider  # noqa: PLC0415 - loaded already

        del model
        wanted = self._profile.fallback
        if wanted is None or not self._grants.allows_model(wanted):
            return None
        name, _, model = wanted.partition("/")
        profile = profile_of(self._settings, name)
        try:
            return Fallback(SteadyProvider(_adapter(profile, _endpoint(profile))), model)
        except UsageError:
            return None


def _stored() -> dict[str, Key]:
    return KeyFile(config_directory()).read()


def _endpoint(profile: Profile) -> Endpoint:
    return endpoint_of(profile, _stored(), os.environ)


def _adapter(profile: Profile, endpoint: Endpoint) -> SdkProvider | OllamaProvider:
    # Imported here: a run on the scripted provider loads none of them.
    if profile.kind == "ollama":
        from runner.providers.ollama import OllamaProvider  # noqa: PLC0415

        return OllamaProvider(profile.name, endpoint)
    from runner.providers.sdk import SdkProvider  # noqa: PLC0415

    return SdkProvider(profile.name, profile.kind, endpoint)


def list_providers() -> list[dict[str, Any]]:
    """
    Every provider: `name`, `kind`, `origin`, `model`, `key`, which says where its key is or what is wrong.

    Raises:
        ConfigError: If a file is wrong.
    """
    settings, stored = load_settings(), _stored()
    rows: list[dict[str, Any]] = [
        {
            "name": SCRIPTED_NAME,
            "kind": SCRIPTED_NAME,
            "origin": None,
            "model": DEFAULT_MODEL,
            "key": "not needed",
        }
    ]
    rows += [
        {
            "name": name,
            "kind": profile.kind,
            "origin": str(profile.address.origin),
            "model": profile.model,
            "key": _describe_key(profile, stored),
        }
        for name, profile in sorted(settings.profiles.items())
    ]
    return rows


def _describe_key(profile: Profile, stored: Mapping[str, Key]) -> str:
    try:
        endpoint = endpoint_of(profile, stored, os.environ)
    except UsageError:
        if profile.name in stored:
            return f"bound to {stored[profile.name].origin}"
        return "missing" if not os.environ.get(profile.api_key_env or "") else "bound elsewhere"
    if endpoint.key is None:
        return "not needed"
    return "stored" if profile.name in stored else str(profile.api_key_env)


def list_models(name: str) -> list[str]:
    """
    Models of a provider, as it lists them itself.

    Raises:
        UsageError: If there is no such provider, or it has no key that may be sent to it.
        ProviderError: If it can't be asked, or does not answer.
    """
    if name == SCRIPTED_NAME:
        return [DEFAULT_MODEL]
    profile = profile_of(load_settings(), name)
    adapter = _adapter(profile, _endpoint(profile))
    import anyio  # noqa: PLC0415 - heavy

    async def ask() -> tuple[str, ...]:
        with anyio.move_on_after(_LIST_S):
            return await adapter.models()
        raise ProviderError(name, f"sent nothing for {_LIST_S:g} s", retryable=True)

    return sorted(anyio.run(ask))


def list_keys() -> list[dict[str, Any]]:
    """
    Stored keys: `provider` and `origin`; never a key.
    """
    return [{"provider": name, "origin": str(key.origin)} for name, key in sorted(_stored().items())]


def set_key(name: str, value: str) -> dict[str, Any]:
    """
    Store a provider's key, bound to where that provider is now.

    Returns:
        `provider`, `origin`, and `path` of the file.

    Raises:
        UsageError: If there is no such provider, or that is no key.
    """
    profile = profile_of(load_settings(), name)
    keys = KeyFile(config_directory())
    keys.set(name, value, profile.address.origin)
    return {"provider": name, "origin": str(profile.address.origin), "path": str(keys.path)}


def remove_key(name: str) -> dict[str, Any]:
    """
    Forget a provider's stored key.

    Returns:
        `provider`.

    Raises:
        UsageError: If none is stored.
    """
    KeyFile(config_directory()).remove(name)
    return {"provider": name}
