# Addresses, taken apart and put together.

from collections import namedtuple

_SAFE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
_RELATIVE = ("", "ftp", "http", "https", "file", "ws", "wss", "sftp", "imap", "nfs", "mms", "rtsp", "svn")


def quote_from_bytes(data, safe="/"):
    keep = _SAFE + (safe.encode() if isinstance(safe, str) else safe)
    return "".join([chr(byte) if byte in keep else "%%%02X" % byte for byte in bytes(data)])


def quote(string, safe="/", encoding=None, errors=None):
    return quote_from_bytes(string.encode() if isinstance(string, str) else string, safe)


def quote_plus(string, safe="", encoding=None, errors=None):
    text = string if isinstance(string, str) else str(bytes(string), "utf-8")
    return quote(text, safe + " ").replace(" ", "+")


def unquote_to_bytes(string):
    data = string.encode() if isinstance(string, str) else bytes(string)
    out = bytearray()
    at = 0
    while at < len(data):
        code = data[at + 1 : at + 3]
        if data[at] == 37 and len(code) == 2 and all([byte in b"0123456789abcdefABCDEF" for byte in code]):
            out.append(int(str(code, "utf-8"), 16))
            at += 3
        else:
            out.append(data[at])
            at += 1
    return bytes(out)


def unquote(string, encoding="utf-8", errors="replace"):
    if "%" not in string:
        return string
    from _text import decode

    return decode(unquote_to_bytes(string), encoding, errors)


def unquote_plus(string, encoding="utf-8", errors="replace"):
    return unquote(string.replace("+", " "), encoding, errors)


def urlencode(query, doseq=False, safe="", encoding=None, errors=None, quote_via=quote_plus):
    pairs = query.items() if hasattr(query, "items") else query
    out = []
    for key, value in pairs:
        key = quote_via(key if isinstance(key, (str, bytes)) else str(key), safe)
        many = doseq and not isinstance(value, (str, bytes)) and hasattr(value, "__len__")
        for one in list(value) if many or doseq and isinstance(value, (list, tuple, set)) else [value]:
            out.append(key + "=" + quote_via(one if isinstance(one, (str, bytes)) else str(one), safe))
    return "&".join(out)


def parse_qsl(qs, keep_blank_values=False, strict_parsing=False, encoding="utf-8", errors="replace",
              max_num_fields=None, separator="&"):  # fmt: skip
    out = []
    for part in qs.split(separator):
        if not part and not strict_parsing:
            continue
        name, equals, value = part.partition("=")
        if not equals and strict_parsing:
            raise ValueError("bad query field: {!r}".format(part))
        if value or keep_blank_values:
            out.append((unquote_plus(name), unquote_plus(value)))
    return out


def parse_qs(qs, keep_blank_values=False, strict_parsing=False, **options):
    found = {}
    for name, value in parse_qsl(qs, keep_blank_values, strict_parsing, **options):
        found.setdefault(name, []).append(value)
    return found


class _Net:
    """What both results have besides their parts."""

    def _place(self):
        return self.netloc.rpartition("@")

    @property
    def username(self):
        info, at, _ = self._place()
        return info.partition(":")[0] if at else None

    @property
    def password(self):
        info, at, _ = self._place()
        _, colon, word = info.partition(":")
        return word if at and colon else None

    def _host(self):
        host = self._place()[2]
        if host[:1] == "[":
            name, _, rest = host[1:].partition("]")
            return name, rest.partition(":")[2]
        name, _, port = host.partition(":")
        return name, port

    @property
    def hostname(self):
        return self._host()[0].lower() or None

    @property
    def port(self):
        port = self._host()[1]
        if not port:
            return None
        if not port.isdigit():
            raise ValueError("Port could not be cast to integer value as {!r}".format(port))
        if int(port) > 65535:
            raise ValueError("Port out of range 0-65535")
        return int(port)


def _with_net(cls):
    for name in ("_place", "username", "password", "_host", "hostname", "port"):
        setattr(cls, name, _Net.__dict__[name])
    return cls


ParseResult = _with_net(namedtuple("ParseResult", ("scheme", "netloc", "path", "params", "query", "fragment")))
SplitResult = _with_net(namedtuple("SplitResult", ("scheme", "netloc", "path", "query", "fragment")))
ParseResult.geturl = lambda self: urlunparse(self)
SplitResult.geturl = lambda self: urlunsplit(self)


def urlsplit(url, scheme="", allow_fragments=True):
    url = "".join([char for char in url.lstrip("".join([chr(code) for code in range(33)])) if char not in "\t\n\r"])
    name, colon, rest = url.partition(":")
    netloc = query = fragment = ""
    if colon and name[:1].isalpha() and all([char.isalpha() or char.isdigit() or char in "+-." for char in name]):
        scheme, url = name.lower(), rest
    if url[:2] == "//":
        end = min([at for at in [url.find(char, 2) for char in "/?#"] if at >= 0] or [len(url)])
        netloc, url = url[2:end], url[end:]
        if ("[" in netloc) != ("]" in netloc):
            raise ValueError("Invalid IPv6 URL")
    if allow_fragments and "#" in url:
        url, _, fragment = url.partition("#")
    if "?" in url:
        url, _, query = url.partition("?")
    return SplitResult(scheme, netloc, url, query, fragment)


def urlparse(url, scheme="", allow_fragments=True):
    parts = urlsplit(url, scheme, allow_fragments)
    path, params = parts.path, ""
    last = path.rfind("/") + 1
    at = path.find(";", last)
    if at >= 0 and parts.scheme in _RELATIVE:
        path, params = path[:at], path[at + 1 :]
    return ParseResult(parts.scheme, parts.netloc, path, params, parts.query, parts.fragment)


def urlunsplit(parts):
    scheme, netloc, path, query, fragment = parts
    if netloc or path[:2] == "//":
        if path and path[:1] != "/":
            path = "/" + path
        path = "//" + netloc + path
    if scheme:
        path = scheme + ":" + path
    if query:
        path += "?" + query
    return path + "#" + fragment if fragment else path


def urlunparse(parts):
    scheme, netloc, path, params, query, fragment = parts
    if params:
        path += ";" + params
    return urlunsplit((scheme, netloc, path, query, fragment))


def urldefrag(url):
    parts = urlparse(url)
    made = namedtuple("DefragResult", ("url", "fragment"))
    scheme, netloc, path, params, query, fragment = parts
    return made(urlunparse((scheme, netloc, path, params, query, "")), fragment)


def urljoin(base, url, allow_fragments=True):
    if not base:
        return url
    if not url:
        return base
    start, found = urlparse(base), urlparse(url, urlparse(base).scheme)
    if found.scheme != start.scheme or found.scheme not in _RELATIVE:
        return url
    if found.netloc:
        return urlunparse(found)
    if not found.path and not found.params:
        query = found.query or start.query
        return urlunparse((found.scheme, start.netloc, start.path, start.params, query, found.fragment))
    if found.path[:1] == "/":
        parts = found.path.split("/")
    else:
        above = start.path.split("/")[:-1]
        if not above and start.netloc:
            above = [""]
        parts = above + found.path.split("/")
    path = _without_dots(parts)
    return urlunparse((found.scheme, start.netloc, path, found.params, found.query, found.fragment))


def _without_dots(parts):
    # Empty names inside of a path mean nothing.
    parts = [part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1)]
    kept = []
    for part in parts:
        if part == "..":
            if len(kept) > 1 or (kept and kept[0]):
                kept.pop()
        elif part != ".":
            kept.append(part)
    if parts and parts[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept) or "/"
