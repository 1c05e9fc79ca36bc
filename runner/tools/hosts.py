"""
Which hosts and addresses may be asked, and what a URL means.

Input: URLs are guest-controlled, and so is what a name resolves to. A URL is parsed once, strictly: whatever
two parsers could read in two ways is refused. A name may be granted and resolve to an address of this machine
or of its network; so the address is judged as well, and the one that was judged is the one to connect to.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import anyio

from runner.errors import UsageError
from runner.outbound import authority
from runner.tools.base import ToolFailure

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""
The addresses of a name, in the order in which they are to be tried. Raises `OSError`.
"""

_MAX_URL_CHARACTERS: Final = 8_192
_ANY: Final = "*"
_WEB_PORTS: Final = frozenset({80, 443})
_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT: Final = 65_535
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>/[^#]*|\?[^#]*)?(?:#.*)?",
    re.ASCII | re.IGNORECASE,
)
# What may stand in a request's first line as it is.
_TARGET: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%\[\]|{}^`-]*", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_GRANT: Final = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+|[0-9a-fA-F]*:[0-9a-fA-F:.]+)(?::(?P<port>[0-9]{1,5}|\*))?"
)
# All that was ever given out for the public; what is not in it leads to a gateway, or nowhere.
_GIVEN_OUT: Final = ipaddress.IPv6Network("2000::/3")
# Some carry an IPv4 address inside, which a gateway on the way would connect to; the rest are for protocols
# and documents, and older releases of Python don't know them all.
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(text) for text in ("2001::/23", "2002::/16", "3fff::/20", "192.88.99.0/24")
)
_SHOWN_CHARACTERS: Final = 100


class Endpoint(NamedTuple):
    """
    What a URL names.

    Attributes:
        scheme: `http` or `https`.
        host: In lower case, without brackets and final dot.
        port: Its own, or the scheme's.
        target: Path and query.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def url(self) -> str:
        """
        As one text.
        """
        return f"{self.origin}{self.target}"

    @property
    def origin(self) -> str:
        """
        Without path and query.
        """
        return f"{self.scheme}://{authority(self.scheme, self.host, self.port)}"


def parse_url(url: str) -> Endpoint:
    """
    What a URL names.

    Raises:
        ToolFailure: If it is none, or one that could be read in two ways: with a user or password, with an
            address that is not written in full, with characters outside of ASCII, with white space.
    """
    found = _URL.fullmatch(url) if len(url) <= _MAX_URL_CHARACTERS else None
    if found is None:
        raise ToolFailure("invalid", "expected a URL such as https://example.com/path, all of it in ASCII")
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    target = found["target"] or "/"
    target = target if target.startswith("/") else f"/{target}"
    if not 0 < port <= _MAX_PORT:
        raise ToolFailure("invalid", f"{port} is no port")
    if not _TARGET.fullmatch(target):
        raise ToolFailure("invalid", "the path of the URL has a character that must be percent-encoded")
    return Endpoint(scheme, _host(found["host"]), port, target)


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise ToolFailure("invalid", "the URL's host is no address") from None
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        # Resolvers take 2130706433, 0177.1 and 0x7f000001 for addresses.
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise ToolFailure("invalid", "the URL's host is a number, and no address in full") from None
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ToolFailure("invalid", "the URL's host is no name")
    return name


@dataclass(frozen=True, slots=True)
class HostGrant:
    """
    One value of `--http-host`.

    Attributes:
        text: As the operator wrote it.
        host: A name, `*.NAME`, `*`, or an address in its own spelling.
        port: The only port, `None` for those of the web, or `*`.
        address: The address, when it is one.
    """

    text: str
    host: str
    port: int | str | None
    address: Address | None = None

    def has_port(self, port: int) -> bool:
        """
        Whether it speaks of a port.
        """
        if self.port is None:
            return port in _WEB_PORTS
        return self.port in (_ANY, port)

    def has_host(self, host: str) -> bool:
        """
        Whether it speaks of a host, named as a URL does.
        """
        if self.host == _ANY:
            return True
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        return host == self.host


class HostGrants:
    """
    The hosts that may be asked.

    Args:
        texts: Values of `--http-host`: `HOST[:PORT]`. Without a port, those of the web; `*` for any.

    Raises:
        UsageError: If one is none.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.grants = tuple(_grant(text) for text in texts)

    def __bool__(self) -> bool:
        return bool(self.grants)

    def check(self, endpoint: Endpoint) -> None:
        """
        Raises:
            ToolFailure: If its host may not be asked on its port.
        """
        if not any(grant.has_host(endpoint.host) and grant.has_port(endpoint.port) for grant in self.grants):
            name = authority(endpoint.scheme, endpoint.host, endpoint.port)
            raise ToolFailure("denied", f"host {name} is not granted; add --http-host {name}")

    def allows_address(self, text: str, port: int) -> bool:
        """
        Whether an address may be connected to: one of the public internet, or one that is granted itself.
        """
        address = _unmapped(ipaddress.ip_address(text.partition("%")[0]))
        if any(grant.address == address and grant.has_port(port) for grant in self.grants):
            return True
        return is_public(address)

    async def addresses(self, endpoint: Endpoint, resolve: Resolve) -> list[str]:
        """
        Where to connect to for an endpoint whose host may be asked.

        Raises:
            ToolFailure: If its name is not known, or leads to no address that is allowed.
        """
        try:
            found = [str(ipaddress.ip_address(endpoint.host))]
        except ValueError:
            found = await _resolved(endpoint, resolve)
        allowed = [address for address in found if self.allows_address(address, endpoint.port)]
        if not allowed:
            raise ToolFailure(
                "denied", f"host {endpoint.host} is at an address of a private network, which is not granted"
            )
        return [str(_unmapped(ipaddress.ip_address(address))) for address in allowed]


def is_public(address: Address) -> bool:
    """
    Whether an address is one of the public internet, and carries no other one inside.
    """
    if isinstance(address, ipaddress.IPv6Address) and address not in _GIVEN_OUT:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast


async def resolve_name(name: str, port: int) -> list[str]:
    """
    The addresses of a name, as the system knows them.
    """
    found = await anyio.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _resolved(endpoint: Endpoint, resolve: Resolve) -> list[str]:
    try:
        return await resolve(endpoint.host, endpoint.port)
    except (OSError, UnicodeError):
        raise ToolFailure("failed", f"host {endpoint.host} is not known") from None


def _unmapped(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _grant(text: str) -> HostGrant:
    found = _GRANT.fullmatch(text)
    if found is None:
        raise _refused(text)
    host, port = found["host"].lower(), found["port"]
    number: int | str | None = int(port) if port and port != _ANY else port
    if isinstance(number, int) and not 0 < number <= _MAX_PORT:
        raise _refused(text)
    try:
        address = _unmapped(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        address = None
    if address is not None:
        return HostGrant(text, str(address), number, address)
    name = host.removeprefix("*.")
    if host != _ANY and (_NUMERIC.fullmatch(name.split(".")[-1]) or not _is_name(name)):
        raise _refused(text)
    return HostGrant(text, host, number)


def _is_name(name: str) -> bool:
    return all(_LABEL.fullmatch(label) for label in name.split("."))


def _refused(text: str) -> UsageError:
    return UsageError(
        f"--http-host {text[:_SHOWN_CHARACTERS]}: not a host",
        hint="accepted: example.com, *.example.com, example.com:8443, 127.0.0.1:*, [::1]:8080, '*'",
    )
