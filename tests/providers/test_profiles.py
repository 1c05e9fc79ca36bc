"""
Which providers there are, and where a key may go.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from runner.errors import ConfigError, KeyRefused, StateUnusable, UsageError
from runner.providers.keys import KeyFile, endpoint_of
from runner.providers.origin import Endpoint, Key, parse_address, parse_origin
from runner.providers.profiles import Profile, Settings, config_path, load_settings, profile_of
from tests.providers.dialects import CANARY

HERE = parse_origin("https://api.example.com")
THERE = parse_origin("https://elsewhere.example.com")


def settings_of(folder: Path, user: str | None = None, project: str | None = None) -> Settings:
    """
    What these files say together.
    """
    folder.chmod(0o700)
    for name, text in (("config.toml", user), ("runner.toml", project)):
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o600)
    environ = {"RUNNER_CONFIG": str(folder / "config.toml")}
    return load_settings(environ, folder / "runner.toml")


def test_without_files_there_are_three(tmp_path: Path) -> None:
    """
    None of them can be asked without a grant, and two not without a key.
    """
    settings = settings_of(tmp_path)
    assert settings.model is None
    assert {name: (profile.kind, str(profile.address)) for name, profile in settings.profiles.items()} == {
        "anthropic": ("anthropic", "https://api.anthropic.com"),
        "openai": ("openai", "https://api.openai.com/v1"),
        "ollama": ("ollama", "http://127.0.0.1:11434"),
    }


def test_the_user_adds_providers(tmp_path: Path) -> None:
    """
    And changes those that are built in.
    """
    settings = settings_of(
        tmp_path,
        """
        model = "anthropic/large"
        [providers.anthropic]
        model = "large"
        fallback = "lab/small"
        [providers.lab]
        kind = "compatible"
        base_url = "http://LOCALHOST:8000/v1/"
        api_key_env = "LAB_KEY"
        [providers.second]
        kind = "openai"
        """,
    )
    assert settings.model == "anthropic/large"
    lab = profile_of(settings, "lab")
    assert (lab.kind, str(lab.address), lab.api_key_env) == (
        "compatible",
        "http://localhost:8000/v1",
        "LAB_KEY",
    )
    anthropic = profile_of(settings, "anthropic")
    assert (anthropic.model, anthropic.fallback, anthropic.api_key_env) == (
        "large",
        "lab/small",
        "ANTHROPIC_API_KEY",
    )
    second = profile_of(settings, "second")
    assert (str(second.address), second.api_key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")


def test_the_project_chooses_a_model_over_the_user(tmp_path: Path) -> None:
    """
    For itself, and of a provider.
    """
    settings = settings_of(
        tmp_path,
        'model = "openai/large"',
        'model = "openai/small"\n[providers.openai]\nmodel = "small"',
    )
    assert settings.model == "openai/small"
    assert profile_of(settings, "openai").model == "small"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model = 3", "model: expected text, found an integer"),
        ('modle = "a/b"', 'modle: unknown key; did you mean "model"?'),
        ('model = "a"', 'model: expected a model such as "anthropic/some-model"'),
        ("[providers.x]\nkind = 'openia'",
         'providers.x.kind: expected "anthropic", "openai", "compatible" or "ollama"'),
        ("[providers.x]\nbase_url = 'https://a'", "providers.x.kind: missing"),
        ("[providers.x]\nkind = 'compatible'", "providers.x.base_url: missing"),
        ("[providers.scripted]\nmodel = 'x'", "providers.scripted: this provider is built in"),
        ("[providers.'a b']\nkind = 'openai'",
         "providers.a b: a provider's name is letters, digits, - and _"),
        ("[providers.openai]\napi_key = 'sk-1'",
         'providers.openai.api_key: unknown key; did you mean "api_key_env"?'),
        ("[providers.openai]\napi_key_env = 'sk-1'",
         "providers.openai.api_key_env: expected the name of an environment variable, never a key"),
        ("[providers.openai]\nbase_url = 'ftp://a'",
         "providers.openai.base_url: not an address such as https://host/v1"),
        ("[providers.openai]\nfallback = 'lab/x'", "providers.openai.fallback: no provider 'lab'"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_its_key(tmp_path: Path, text: str, problem: str) -> None:
    """
    Loudly: nobody goes on with half of it.
    """
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, text)
    assert caught.value.message == f"{tmp_path / 'config.toml'}: {problem}"


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    """
    With the place where it stops being that.
    """
    with pytest.raises(ConfigError, match=r"config\.toml: not valid TOML: "):
        settings_of(tmp_path, "model =")


@pytest.mark.parametrize("key", ["kind = 'openai'", "base_url = 'https://evil'", "api_key_env = 'HOME'",
                                 "fallback = 'openai/x'"])  # fmt: skip
def test_a_project_can_t_say_where_anything_is_sent(tmp_path: Path, key: str) -> None:
    """
    Its file came with a folder from anywhere.
    """
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, project=f"[providers.openai]\n{key}")
    name = key.partition(" ")[0]
    assert caught.value.message == (
        f"{tmp_path / 'runner.toml'}: providers.openai.{name}: a project can't say where things are sent; "
        f"write it into {tmp_path / 'config.toml'}"
    )
    with pytest.raises(ConfigError, match="a project can't add a provider"):
        settings_of(tmp_path, project=f"[providers.mine]\n{key}")


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """
    It says where keys go.
    """
    settings_of(tmp_path, "")
    (tmp_path / "config.toml").chmod(0o666)
    environ = {"RUNNER_CONFIG": str(tmp_path / "config.toml")}
    with pytest.raises(ConfigError, match="can be written by other users"):
        load_settings(environ, tmp_path / "none")
    (tmp_path / "config.toml").chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="can be written by other users"):
        load_settings(environ, tmp_path / "none")


def test_the_user_s_file_has_a_place_of_its_own() -> None:
    """
    Unless a variable names another.
    """
    assert config_path({}).name == "config.toml"
    assert config_path({}).parent.name == "runner"
    assert config_path({"RUNNER_CONFIG": "/x/y.toml"}) == Path("/x/y.toml")


@pytest.mark.parametrize(
    "text",
    ["api.example.com", "https://", "https://a@b", "https://user:pw@b", "https://a?x=1", "https://a#x",
     "https://a/ b", "https://a\\@b", "https://a:99999", "https://a_b", "javascript:1", "https://a%2eb/",
     "https://é.example", "//a"],
)  # fmt: skip
def test_an_address_that_can_be_read_in_two_ways_is_none(text: str) -> None:
    """
    Two readers of one address would mean two places.
    """
    with pytest.raises(ValueError, match="address"):
        parse_address(text)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a", "https://A:443", True),
        ("https://a", "http://a", False),
        ("https://a", "https://a:8443", False),
        ("https://a", "https://b.a", False),
        ("http://[::1]:80", "http://[::1]", True),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    """
    Nothing less, and nothing like it.
    """
    assert (parse_origin(one) == parse_origin(other)) is same


def test_a_key_is_shown_to_nobody() -> None:
    """
    Neither itself, nor where it is part of something.
    """
    key = Key(CANARY, HERE)
    endpoint = Endpoint(parse_address("https://api.example.com/v1"), key)
    assert CANARY not in f"{key} {key!r} {endpoint} {endpoint!r}"


def test_an_endpoint_never_has_a_key_of_elsewhere() -> None:
    """
    It can't be made, whoever tries.
    """
    with pytest.raises(ValueError, match="bound to https://elsewhere"):
        Endpoint(parse_address("https://api.example.com"), Key(CANARY, THERE))
    plain = parse_address("http://api.example.com")
    with pytest.raises(ValueError, match="https or to this machine"):
        Endpoint(plain, Key(CANARY, plain.origin))


def profile(address: str = "https://api.example.com/v1", **facts: object) -> Profile:
    """
    A provider there.
    """
    return Profile(name="lab", kind="openai", address=parse_address(address), **facts)  # type: ignore[arg-type]


def test_a_stored_key_goes_where_it_was_bound() -> None:
    """
    Any other address is refused by name, also when a variable has another key.
    """
    stored = {"lab": Key(CANARY, HERE)}
    assert endpoint_of(profile(), stored, {}).key == stored["lab"]
    with pytest.raises(KeyRefused) as caught:
        endpoint_of(profile("https://elsewhere.example.com", api_key_env="LAB"), stored, {"LAB": "sk-2"})
    assert caught.value.message == (
        "provider lab is at https://elsewhere.example.com, and the key stored for it is bound to "
        "https://api.example.com"
    )
    assert caught.value.hint == "runner keys set lab binds a key to https://elsewhere.example.com"


def test_a_well_known_variable_is_bound_to_whom_it_names() -> None:
    """
    Only the user's own name for a variable binds it to where the same file says.
    """
    elsewhere = profile("https://elsewhere.example.com", api_key_env="OPENAI_API_KEY")
    with pytest.raises(KeyRefused) as caught:
        endpoint_of(elsewhere, {}, {"OPENAI_API_KEY": CANARY})
    assert caught.value.message == (
        "provider lab is at https://elsewhere.example.com, and the key in OPENAI_API_KEY for it is bound to "
        "https://api.openai.com"
    )
    own = endpoint_of(profile(api_key_env="LAB"), {}, {"LAB": f" {CANARY}\n"})
    assert own.key == Key(CANARY, HERE)


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    """
    With what to do.
    """
    with pytest.raises(KeyRefused) as caught:
        endpoint_of(profile(api_key_env="LAB"), {}, {"LAB": ""})
    assert caught.value.message == "provider lab has no key for https://api.example.com"
    assert caught.value.hint == "runner keys set lab, or set LAB"
    with pytest.raises(KeyRefused, match="what is there is none") as caught:
        endpoint_of(profile(api_key_env="LAB"), {}, {"LAB": "two words"})
    with pytest.raises(KeyRefused, match="anybody on the way"):
        endpoint_of(profile("http://api.example.com", api_key_env="LAB"), {}, {"LAB": CANARY})


def test_keys_are_kept_in_a_file_of_the_user_s_own(tmp_path: Path) -> None:
    """
    Readable by nobody else, and whole.
    """
    file = KeyFile(tmp_path / "deep" / "runner")
    assert file.read() == {}
    file.set("lab", CANARY, HERE)
    file.set("other", "sk-2", THERE)
    assert file.read() == {"lab": Key(CANARY, HERE), "other": Key("sk-2", THERE)}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    file.set("lab", "sk-3", THERE)
    file.remove("other")
    assert file.read() == {"lab": Key("sk-3", THERE)}
    with pytest.raises(UsageError, match=r"^no key is stored for other$"):
        file.remove("other")


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "é", "x" * 8193])
def test_what_is_no_key_is_not_stored(tmp_path: Path, value: str) -> None:
    """
    And not repeated in the error.
    """
    file = KeyFile(tmp_path / "runner")
    with pytest.raises(UsageError, match=r"^that is no key: a key is one word of plain characters$"):
        file.set("lab", value, HERE)
    assert not file.path.exists()


def test_a_key_file_that_others_could_read_is_refused(tmp_path: Path) -> None:
    """
    Whoever could read it may have the keys.
    """
    file = KeyFile(tmp_path / "runner")
    file.set("lab", CANARY, HERE)
    file.path.chmod(0o640)
    with pytest.raises(StateUnusable) as caught:
        file.read()
    assert "can be read by other users" in caught.value.message
    file.path.chmod(0o600)
    real = file.path.rename(tmp_path / "real.json")
    file.path.symlink_to(real)
    with pytest.raises(StateUnusable, match="can't be read"):
        file.read()
    file.path.unlink()
    os.mkfifo(file.path)
    with pytest.raises(StateUnusable, match="is not a file"):
        file.read()


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "not valid JSON"),
        (json.dumps({"version": 2, "keys": {}}), "version: expected 1"),
        (json.dumps({"version": 1, "keys": {"a": {"key": f"{CANARY} x", "origin": "https://a"}}}),
         "keys.a.key: expected a key"),
        (json.dumps({"version": 1, "keys": {"a": {"key": CANARY}}}), "keys.a.origin: missing"),
        (json.dumps({"version": 1, "keys": {"a": {"key": CANARY, "origin": "https://a/x"}}}),
         "keys.a.origin: an origin has no path"),
    ],
)  # fmt: skip
def test_a_broken_key_file_is_named_and_not_quoted(tmp_path: Path, document: str, problem: str) -> None:
    """
    No error has a key in it.
    """
    file = KeyFile(tmp_path / "runner")
    file.set("lab", CANARY, HERE)
    file.path.write_text(document, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        file.read()
    assert caught.value.message == f"{file.path}: {problem}"
    assert CANARY not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.to_wire()}"
