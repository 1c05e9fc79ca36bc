"""
Where a key may go: origins, and a key that is bound to one.

Input: addresses from files of the operator, and from project files, which strangers may have written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"https": 443, "http": 80}
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*", re.ASCII)
_PATH: Final = re.compile(r"[A-Za-z0-9._~/%@+-]*", re.ASCII)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Origin:
    """
    Who is at the other end: scheme, host and port. Two are the same or have nothing to do with each other.

    Attributes:
        scheme: `http` or `https`.
        host: In lower case; an IPv6 address without brackets.
        port: Always said.
    """

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def is_private(self) -> bool:
        """
        Whether nobody on the way can read along.
        """
        return self.scheme == "https" or self.host in _LOOPBACK


@dataclass(frozen=True, slots=True)
class Address:
    """
    A base URL, taken apart.

    Attributes:
        origin: Who is asked.
        path: What its paths begin with, without a slash at the end.
    """

    origin: Origin
    path: str

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def parse_address(text: str) -> Address:
    """
    The address that a base URL states. Nothing that could be read in two ways is accepted: no user, query,
    fragment, escape in the host, or space.

    Raises:
        ValueError: If it is none; says what is wrong.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        msg = "not an address such as https://host/v1"
        raise ValueError(msg) from None
    host = (parts.hostname or "").lower()
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host):
        msg = "not an address such as https://host/v1"
        raise ValueError(msg)
    if "@" in parts.netloc or "\\" in text or parts.query or parts.fragment or "?" in text or "#" in text:
        msg = "an address has no user, query or fragment"
        raise ValueError(msg)
    if not _PATH.fullmatch(parts.path):
        msg = "an address has a plain path"
        raise ValueError(msg)
    return Address(Origin(parts.scheme, host, port or _PORTS[parts.scheme]), parts.path.rstrip("/"))


def parse_origin(text: str) -> Origin:
    """
    The origin that a text states.

    Raises:
        ValueError: If it is none, or more than one.
    """
    address = parse_address(text)
    if address.path:
        msg = "an origin has no path"
        raise ValueError(msg)
    return address.origin


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key, and the only origin that it may be sent to. It shows itself to nobody by accident.

    Attributes:
        value: The secret.
        origin: Whom it is for.
    """

    value: str = field(repr=False)
    origin: Origin

    def __str__(self) -> str:
        return "[key]"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    Where a provider is, and the key that is sent there.

    Attributes:
        address: Its base URL.
        key: Bound to that origin, or `None` where none is needed.

    Raises:
        ValueError: If the key is bound elsewhere, or others could read it on its way.
    """

    address: Address
    key: Key | None = None

    def __post_init__(self) -> None:
        if self.key is None:
            return
        if self.key.origin != self.address.origin:
            msg = f"the key is bound to {self.key.origin}"
            raise ValueError(msg)
        if not self.address.origin.is_private:
            msg = "a key is sent over https or to this machine only"
            raise ValueError(msg)

    def redact(self, text: str) -> str:
        """
        The text without the key and without addresses, for whoever must not learn them.
        """
        if self.key is not None:
            text = text.replace(self.key.value, "[key]")
        text = re.sub(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]*", "[address]", text)
        return text.replace(self.address.origin.host, "[address]")
