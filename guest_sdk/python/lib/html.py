# Text for HTML, and from it.


def escape(s, quote=True):
    s = s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return s.replace('"', "&quot;").replace("'", "&#x27;") if quote else s


# The common ones; the rest of HTML's two thousand stay as they are.
_NAMED = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": "\xa0", "copy": "\xa9", "reg": "\xae",
    "hellip": "\u2026", "mdash": "\u2014", "ndash": "\u2013", "lsquo": "\u2018", "rsquo": "\u2019", "ldquo": "\u201c",
    "rdquo": "\u201d", "bull": "\u2022", "middot": "\xb7", "laquo": "\xab", "raquo": "\xbb", "euro": "\u20ac",
    "pound": "\xa3", "yen": "\xa5", "cent": "\xa2", "deg": "\xb0", "times": "\xd7", "divide": "\xf7", "trade": "\u2122",
    "auml": "\xe4", "ouml": "\xf6", "uuml": "\xfc", "Auml": "\xc4", "Ouml": "\xd6", "Uuml": "\xdc", "szlig": "\xdf",
    "eacute": "\xe9", "egrave": "\xe8", "agrave": "\xe0", "ccedil": "\xe7", "ntilde": "\xf1",
}  # fmt: skip


def unescape(s):
    out = []
    at = 0
    while True:
        start = s.find("&", at)
        if start < 0:
            out.append(s[at:])
            return "".join(out)
        out.append(s[at:start])
        end = s.find(";", start, start + 34)
        char = _char(s[start + 1 : end]) if end > 0 else None
        if char is None:
            out.append("&")
            at = start + 1
        else:
            out.append(char)
            at = end + 1


def _char(name):
    if name[:1] != "#":
        return _NAMED.get(name)
    try:
        code = int(name[2:], 16) if name[1:2] in ("x", "X") else int(name[1:])
    except ValueError:
        return None
    if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return "\ufffd"
    return chr(code)
