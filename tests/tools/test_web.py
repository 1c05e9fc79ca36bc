"""
Tools for the web: what they send and read, and that no host is reached that was not granted.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runner.errors import UsageError
from runner.tools.base import ToolFailure, ToolOverran
from runner.tools.hosts import HostGrants, is_public, parse_url
from runner.tools.page import text_of_page
from runner.tools.registry import ToolRegistry
from runner.tools.web import web_tools

PNG = b"\x89PNG\r\n\x1a\n\0\0\0"


class Server:
    """
    A web server on loopback that answers as a test says.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.hold = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                size = int(self.headers.get("content-length", 0))
                outer.requests.append({
                    "method": self.command,
                    "path": self.path,
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": self.rfile.read(size),
                })  # fmt: skip
                if self.path == "/hang":
                    outer.hold.wait(20)
                    return
                status, headers, body = outer.answers.get(self.path, (200, {}, b"ok"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815 - the library's names

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self.hold.set()
        self.http.shutdown()
        self._thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server on loopback."""
    server = Server()
    yield server
    server.close()


def nobody(name: str, port: int) -> Any:
    """No name may be looked up."""
    raise AssertionError((name, port))


def run(name: str, arguments: dict[str, Any], hosts: list[str], resolve: Any = nobody, **changes: Any) -> Any:
    """One call in a run of its own."""
    tools = [replace(tool, **changes) for tool in web_tools(HostGrants(hosts), resolve)]

    async def main() -> Any:
        async with ToolRegistry(tools) as registry:
            return (await registry.call(name, arguments, execution="rex-1-1")).value

    return anyio.run(main)


def failure(*arguments: Any, **named: Any) -> tuple[str, str]:
    """How a call failed."""
    with pytest.raises(ToolFailure) as caught:
        run(*arguments, **named)
    return caught.value.kind, caught.value.message


def names(table: dict[str, list[str]]) -> Callable[[str, int], Any]:
    """A resolver that knows some names; the last answer for a name stays."""

    async def resolve(name: str, port: int) -> list[str]:
        del port
        if name not in table:
            raise OSError
        answers = table[name]
        return [answers.pop(0)] if len(answers) > 1 else list(answers)

    return resolve


# -- what is sent and read --------------------------------------------------------------------


def test_a_request_is_sent_as_it_was_asked_for(server: Server):
    """Method, headers and body; and the answer is told with its headers."""
    server.answers["/x?a=1"] = (201, {"Content-Type": "text/plain", "X-Made": "here"}, "größe".encode())
    answer = run(
        "http_request",
        {"url": f"{server.url}/x?a=1#y", "method": "PUT", "headers": {"X-Own": "1"}, "body": "ü"},
        [server.host],
    )
    assert (answer["status"], answer["body"], answer["truncated"]) == (201, "größe", False)
    assert (answer["url"], answer["headers"]["x-made"]) == (f"{server.url}/x?a=1", "here")
    [request] = server.requests
    assert (request["method"], request["path"], request["body"]) == ("PUT", "/x?a=1", "ü".encode())
    assert request["headers"]["x-own"] == "1"
    assert request["headers"]["host"] == server.host
    assert len(request["headers"]["idempotency-key"]) == 32


def test_nothing_of_the_host_is_sent_along(server: Server, monkeypatch: pytest.MonkeyPatch):
    """No cookie, no proxy, no key of the environment, and no key of idempotency where none is of use."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.answers["/"] = (200, {"Set-Cookie": "a=b"}, b"")
    run("http_request", {"url": server.url}, [server.host])
    answer = run("http_request", {"url": server.url}, [server.host])
    assert "set-cookie" not in answer["headers"]
    assert set(server.requests[1]["headers"]) == {"host", "accept-encoding", "user-agent"}


def test_what_is_no_text_is_told_as_base64(server: Server):
    """By its type, or by its bytes where it has none."""
    server.answers["/png"] = (200, {"Content-Type": "image/png"}, PNG)
    server.answers["/odd"] = (200, {}, PNG)
    server.answers["/gzip"] = (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, b"\x1f\x8b")
    for path, data in (("/png", PNG), ("/odd", PNG), ("/gzip", b"\x1f\x8b")):
        answer = run("http_request", {"url": server.url + path}, [server.host])
        assert base64.b64decode(answer["body_base64"]) == data
        assert "body" not in answer


def test_a_long_answer_is_cut_between_characters_and_says_so(server: Server):
    """It is text all the same."""
    server.answers["/"] = (200, {"Content-Type": "text/plain; charset=utf-8"}, "€".encode() * 100)
    answer = run("http_request", {"url": server.url, "max_bytes": 10}, [server.host])
    assert (answer["body"], answer["truncated"]) == ("€€€", True)
    answer = run("http_request", {"url": server.url, "max_bytes": 300}, [server.host])
    assert (answer["body"], answer["truncated"]) == ("€" * 100, False)


def test_a_page_is_told_as_text(server: Server):
    """Without what is not to be read."""
    page = (
        b"<html><head><title>T</title></head><body><script>x()</script><p>Hello &amp; <b>you</b></p></body>"
    )
    server.answers["/"] = (200, {"Content-Type": "text/html"}, page)
    assert run("fetch_url", {"url": server.url}, [server.host]) == {
        "status": 200,
        "url": f"{server.url}/",
        "text": "Hello & you",
        "truncated": False,
    }
    cut = run("fetch_url", {"url": server.url, "max_characters": 5}, [server.host])
    assert (cut["text"], cut["truncated"]) == ("Hello\n[truncated]", True)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<br>b", "a\nb"),
        ("<!-- x --><p>a</p>\n\n\n\n<p>b", "a\n\nb"),
        ("1 < 2 &lt; 3", "1 < 2 < 3"),
        ("<SCRIPT>x</SCRIPT>y", "y"),
        ("<script>never closed", "never closed"),
        ("a<!-- never closed", "a"),
        ("a<b never closed", "a"),
        ("<style>p{}</style", ""),
        ("İ<script>x</script>y", "İy"),
    ],
)
def test_a_page_need_not_be_right(page: str, text: str):
    """Whatever it is, some text comes of it."""
    assert text_of_page(page) == text


@pytest.mark.parametrize("piece", ["<svg", "<!--", "<![", "<svg>", "<script>", "<a ", "&", "</", "<!"])
def test_a_page_of_many_open_ends_takes_linear_time(piece: str):
    """A megabyte of each is over before the test's own bound."""
    text_of_page(piece * 200_000)


def test_a_request_that_hangs_is_given_up(server: Server):
    """What may be repeated has failed; what may not is uncertain."""
    assert failure("http_request", {"url": f"{server.url}/hang"}, [server.host], timeout_ms=100) == (
        "timeout",
        "http_request took more than 100 ms and was given up",
    )
    with pytest.raises(ToolOverran):
        run("http_request", {"url": f"{server.url}/hang", "method": "POST"}, [server.host], timeout_ms=100)


def test_a_server_that_is_not_there_is_a_failure(server: Server):
    """Of the outside."""
    server.close()
    kind, message = failure("http_request", {"url": server.url}, [server.host])
    assert (kind, message.startswith("127.0.0.1 can't be reached: ")) == ("failed", True)


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-C: d"}, {"X-A": "b\nc"}, {"X-A": "b\rc"}, {"X-A": "b\0c"}, {"X-A": "ü"}, {"X A": "b"},
        {"X-A:": "b"}, {"": "b"}, {"X-A\r\nX-B": "c"}, {"X-A": "b\u2028c"},
    ],
)  # fmt: skip
def test_a_header_that_could_become_two_is_refused(server: Server, headers: dict[str, str]):
    """Nothing is sent."""
    assert failure("http_request", {"url": server.url, "headers": headers}, [server.host])[0] == "invalid"
    assert server.requests == []


@pytest.mark.parametrize(
    "name",
    ["Host", "HOST", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "Upgrade", "Expect"],
)
def test_a_header_that_says_whom_it_is_for_or_where_it_ends_is_denied(server: Server, name: str):
    """Those are the host's."""
    assert failure("http_request", {"url": server.url, "headers": {name: "x"}}, [server.host]) == (
        "denied",
        f"headers: {name} is not the agent's to set",
    )


# -- whom to ask ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/",
        "http://127.0.0.1.:80.:80/", "http://[::1", "http://[::1%25lo]/", "http://user@127.0.0.1/",
        "http://user:pw@127.0.0.1/", "http://granted@evil.example/", "http://evil.example\\@granted/",
        "http://127.0.0.1\\@granted/", "http:\\\\127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1",
        "//127.0.0.1/", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/", "javascript:1",
        "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:8o/", "http://127.0.0.1:-1/",
        "http://127.0.0.1 /", " http://127.0.0.1/", "http://127.0.0.1/\r\nX: y", "http://127.0.0.1/a b",
        "http://127.0.0.1\t/", "http://127.0.0.1\0/", "http://\u2460\u2461\u2466.0.0.1/",
        "http://127\u30020\u30020\u30021/", "http://\uff4cocalhost/", "http://a..b/",
        "http://-a/", "http:///", "http://", "", "http://[1.2.3.4]/",
        "http://256.0.0.1/", "http://1.2.3/", "http://0x/", "x" * 9000,
    ],
)  # fmt: skip
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str):
    """Before anything is looked up."""
    with pytest.raises(ToolFailure) as caught:
        parse_url(url)
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("HTTP://EXAMPLE.com.", ("http", "example.com", 80, "/")),
        ("https://example.com:8443?a=b", ("https", "example.com", 8443, "/?a=b")),
        ("http://[0:0:0:0:0:0:0:1]:80/x#y", ("http", "::1", 80, "/x")),
        ("http://a/../b", ("http", "a", 80, "/../b")),
        ("http://a/http://b@c:1/", ("http", "a", 80, "/http://b@c:1/")),
    ],
)
def test_a_url_is_read_in_one_way(url: str, endpoint: Any):
    """Its host in lower case."""
    assert parse_url(url) == endpoint


@pytest.mark.parametrize(
    ("grant", "url", "granted"),
    [
        ("example.com", "http://example.com/", True),
        ("example.com", "https://EXAMPLE.COM./", True),
        ("example.com", "http://example.com:8080/", False),
        ("example.com:8080", "http://example.com:8080/", True),
        ("example.com:8080", "http://example.com/", False),
        ("example.com:*", "http://example.com:22/", True),
        ("example.com", "http://sub.example.com/", False),
        ("example.com", "http://example.com.evil.net/", False),
        ("example.com", "http://evil-example.com/", False),
        ("*.example.com", "http://sub.example.com/", True),
        ("*.example.com", "http://a.b.example.com/", True),
        ("*.example.com", "http://example.com/", False),
        ("*.example.com", "http://evilexample.com/", False),
        ("*.example.com", "http://.example.com/", None),
        ("*", "http://example.net/", True),
        ("*", "http://example.net:22/", False),
        ("[::1]:80", "http://[0::1]/", True),
        ("::1", "http://[::1]/", True),
        ("10.0.0.1", "http://10.0.0.2/", False),
    ],
)
def test_a_grant_speaks_of_the_hosts_that_it_says(grant: str, url: str, granted: bool | None):
    """Labels are compared, not characters; and ports too."""
    if granted is None:
        with pytest.raises(ToolFailure, match="no name"):
            parse_url(url)
    elif granted:
        HostGrants([grant]).check(parse_url(url))
    else:
        with pytest.raises(ToolFailure, match=r"^host .* is not granted; add --http-host .*$"):
            HostGrants([grant]).check(parse_url(url))


@pytest.mark.parametrize(
    "text",
    [
        "", "http://example.com", "example.com/x", "exa*mple.com", "*.*", "a:b", "a:0", "a:65536",
        "2130706433", "a b", "*example.com", "user@example.com", "127.1", "[::1", "ä.example",
    ],
)  # fmt: skip
def test_what_is_no_host_is_no_grant(text: str):
    """A rule that could match nothing, or more than it seems to, is refused."""
    with pytest.raises(UsageError, match=r": not a host$"):
        HostGrants([text])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1",
        "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd12::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1",
        "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "2001:db8::1", "fec0::1", "fd00:ec2::254",
        "192.88.99.1", "3fff::1", "4000::1", "100::1",
    ],
)  # fmt: skip
def test_an_address_of_this_machine_or_its_network_is_not_connected_to(address: str):
    """Whatever name leads there, and however it is written."""
    assert not HostGrants(["*:*"]).allows_address(address, 80)
    kind, message = failure(
        "fetch_url", {"url": "http://inside.example/"}, ["*"], names({"inside.example": [address]})
    )
    assert (kind, message) == (
        "denied",
        "host inside.example is at an address of a private network, which is not granted",
    )


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1"])
def test_an_address_of_the_public_internet_is(address: str):
    """Also inside an address of the other kind."""
    assert HostGrants(["*"]).allows_address(address, 80)
    if ":" not in address:
        assert HostGrants(["*"]).allows_address(f"::ffff:{address}", 80)


def test_what_carries_an_address_inside_is_not_public():
    """A gateway would connect to what is inside."""
    assert not is_public(ipaddress.ip_address("64:ff9b::808:808"))


def test_a_private_address_is_reached_when_it_is_granted_itself(server: Server):
    """By its own spelling, or by a name that is granted as well; not on another port."""
    resolve = names({"inside.example": ["::ffff:127.0.0.1"]})
    url = f"http://inside.example:{server.port}/"
    granted = ["inside.example:*", server.host]
    assert run("fetch_url", {"url": url}, granted, resolve)["text"] == "ok"
    assert server.requests[0]["headers"]["host"] == f"inside.example:{server.port}"
    assert failure("fetch_url", {"url": url}, ["inside.example:*"], resolve)[0] == "denied"
    assert failure("fetch_url", {"url": url}, ["inside.example:*", "127.0.0.1:9"], resolve)[0] == "denied"
    assert failure("fetch_url", {"url": url}, ["inside.example:*", "127.0.0.1"], resolve)[0] == "denied"
    assert failure("fetch_url", {"url": url}, [server.host], resolve)[0] == "denied"


def test_a_name_that_leads_elsewhere_the_second_time_leads_nowhere_else(server: Server):
    """It is looked up once, and the connection goes to the address that was judged."""
    asked: list[str] = []

    async def rebinding(name: str, port: int) -> list[str]:
        del port
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    url = f"http://rebind.example:{server.port}/"
    assert run("fetch_url", {"url": url}, ["rebind.example:*", server.host], rebinding)["text"] == "ok"
    assert asked == ["rebind.example"]
    # The other way round: public when it is judged, and then this machine.
    table = {"rebind.example": ["169.254.169.254", "127.0.0.1"]}
    assert failure("fetch_url", {"url": url}, ["rebind.example:*"], names(table))[0] == "denied"


def test_of_several_addresses_only_those_that_are_allowed_are_tried(server: Server):
    """One that is not is left out, not followed."""

    async def several(name: str, port: int) -> list[str]:
        del name, port
        return ["10.0.0.1", "127.0.0.1"]

    url = f"http://several.example:{server.port}/"
    assert run("fetch_url", {"url": url}, ["several.example:*", server.host], several)["text"] == "ok"


def test_a_name_that_is_not_known_is_a_failure():
    """Of the outside."""
    assert failure("fetch_url", {"url": "http://gone.example/"}, ["*"], names({})) == (
        "failed",
        "host gone.example is not known",
    )


def test_a_host_that_is_not_granted_is_not_looked_up():
    """A lookup tells the name's owner."""
    assert failure("fetch_url", {"url": "http://secret.evil.example/"}, ["example.com"]) == (
        "denied",
        "host secret.evil.example is not granted; add --http-host secret.evil.example",
    )


# -- redirects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        "http://evil.example/", "//evil.example/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/",
        "http://localhost/", "http://127.0.0.1:1/",
    ],
)  # fmt: skip
def test_a_redirect_to_a_host_that_is_not_granted_is_denied(server: Server, where: str):
    """The grant is asked at every hop."""
    server.answers["/"] = (302, {"Location": where}, b"")
    kind, message = failure("fetch_url", {"url": server.url}, [server.host])
    assert (kind, "is not granted; add --http-host" in message) == ("denied", True)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "where",
    ["http://2130706433/", "file:///etc/passwd", "http://a@127.0.0.1/", "http:\\\\evil.example", "data:,x"],
)
def test_a_redirect_to_what_is_no_url_is_refused(server: Server, where: str):
    """As if the agent had asked for it."""
    server.answers["/"] = (302, {"Location": where}, b"")
    assert failure("fetch_url", {"url": server.url}, [server.host])[0] == "invalid"


def test_a_redirect_to_a_name_at_a_private_address_is_denied(server: Server):
    """The address is judged at every hop too."""
    server.answers["/"] = (302, {"Location": "http://inside.example/"}, b"")
    hosts, resolve = [server.host, "inside.example"], names({"inside.example": ["10.0.0.1"]})
    assert failure("fetch_url", {"url": server.url}, hosts, resolve)[0] == "denied"


def test_redirects_are_followed_where_they_are_granted(server: Server):
    """And what answered in the end is told."""
    server.answers["/"] = (302, {"Location": "next?a=1"}, b"")
    answer = run("http_request", {"url": server.url}, [server.host])
    assert (answer["status"], answer["url"]) == (200, f"{server.url}/next?a=1")
    answer = run("http_request", {"url": server.url, "follow_redirects": False}, [server.host])
    assert (answer["status"], answer["headers"]["location"]) == (302, "next?a=1")


def test_redirects_for_ever_end(server: Server):
    """After five."""
    server.answers["/"] = (302, {"Location": "/"}, b"")
    assert failure("fetch_url", {"url": server.url}, [server.host]) == ("failed", "more than 5 redirects")
    assert len(server.requests) == 6


def test_what_was_meant_for_one_origin_is_not_told_to_another(server: Server):
    """Headers of the agent's stay behind; a changed method takes its body along."""
    other = Server()
    try:
        server.answers["/"] = (303, {"Location": f"{other.url}/"}, b"")
        run(
            "http_request",
            {
                "url": server.url,
                "method": "POST",
                "headers": {"Authorization": "Bearer x", "X-Key": "y", "Accept": "text/plain"},
                "body": "secret",
            },
            [server.host, other.host],
        )
        assert server.requests[0]["headers"]["authorization"] == "Bearer x"
        [request] = other.requests
        assert (request["method"], request["body"]) == ("GET", b"")
        assert set(request["headers"]) == {"host", "accept", "accept-encoding", "user-agent"}
    finally:
        other.close()


# -- certificates -----------------------------------------------------------------------------


@pytest.fixture
def secure_server(server: Server, tmp_path: Path) -> tuple[Server, Path]:
    """The server over TLS, with a certificate for `good.example`, and the file that it is believed by."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "good.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("good.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    believed, both = tmp_path / "ca.pem", tmp_path / "server.pem"
    believed.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    both.write_bytes(believed.read_bytes() + key.private_bytes(serialization.Encoding.PEM, form, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    # Handshakes that a client breaks off are none of a test's output.
    server.http.handle_error = lambda *_: None  # type: ignore[method-assign]
    return server, believed


def test_a_certificate_is_held_to_the_name_and_not_to_the_address(
    secure_server: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
):
    """The connection goes to an address that was judged; who answers there must be whom the URL names."""
    server, believed = secure_server
    context = ssl.create_default_context(cafile=str(believed))
    monkeypatch.setattr("runner.outbound.trusted", lambda: context)
    hosts = ["*:*", server.host]
    resolve = names({"good.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    url = f"https://good.example:{server.port}/"
    assert run("fetch_url", {"url": url}, hosts, resolve)["text"] == "ok"
    kind, message = failure("fetch_url", {"url": f"https://other.example:{server.port}/"}, hosts, resolve)
    assert (kind, "ertificate" in message) == ("failed", True)
    assert failure("fetch_url", {"url": f"https://{server.host}/"}, hosts, resolve)[0] == "failed"
    assert len(server.requests) == 1


def test_a_certificate_that_the_system_does_not_believe_is_refused(secure_server: tuple[Server, Path]):
    """Whoever signed it himself."""
    server, _ = secure_server
    resolve = names({"good.example": ["127.0.0.1"]})
    url = f"https://good.example:{server.port}/"
    assert failure("fetch_url", {"url": url}, ["*:*", server.host], resolve)[0] == "failed"
    assert server.requests == []
