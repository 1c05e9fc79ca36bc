# Bytes as text, and back.

from ubinascii import a2b_base64, b2a_base64, hexlify, unhexlify


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def _error(text):
    import binascii

    return binascii.Error(text)


def b64encode(s, altchars=None):
    encoded = b2a_base64(bytes(s)).rstrip(b"\n")
    if altchars is not None:
        encoded = encoded.replace(b"+", altchars[:1]).replace(b"/", altchars[1:2])
    return encoded


def b64decode(s, altchars=None, validate=False):
    data = _bytes(s)
    if altchars is not None:
        altchars = _bytes(altchars)
        data = data.replace(altchars[:1], b"+").replace(altchars[1:2], b"/")
    kept = bytearray()
    for byte in data:
        if byte in _ALPHABET:
            kept.append(byte)
        elif validate:
            raise _error("Only base64 data is allowed")
    plain = bytes(kept).rstrip(b"=")
    if len(plain) % 4 == 1:
        text = "Invalid base64-encoded string: number of data characters ({}) cannot be 1 more than a multiple of 4"
        raise _error(text.format(len(plain)))
    if (len(plain) + bytes(kept).count(b"=")) % 4 and bytes(kept).count(b"=") < -len(plain) % 4:
        raise _error("Incorrect padding")
    return a2b_base64(plain + b"=" * (-len(plain) % 4))


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

standard_b64encode, standard_b64decode = b64encode, b64decode


def urlsafe_b64encode(s):
    return b64encode(s, b"-_")


def urlsafe_b64decode(s):
    return b64decode(s, b"-_")


def b16encode(s):
    return hexlify(bytes(s)).upper()


def b16decode(s, casefold=False):
    data = _bytes(s)
    if (not casefold and data != data.upper()) or len(data) % 2:
        raise _error("Non-base16 digit found")
    try:
        return unhexlify(data)
    except ValueError:
        raise _error("Non-base16 digit found")


_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def b32encode(s):
    data = bytes(s)
    out = []
    for at in range(0, len(data), 5):
        part = data[at : at + 5]
        number = int.from_bytes(part + bytes(5 - len(part)), "big")
        chars = "".join([_BASE32[number >> shift & 31] for shift in range(35, -1, -5)])
        used = (len(part) * 8 + 4) // 5
        out.append(chars[:used] + "=" * (8 - used))
    return "".join(out).encode()


def b32decode(s, casefold=False):
    text = str(_bytes(s), "utf-8")
    text = (text.upper() if casefold else text).rstrip("=")
    bits = count = 0
    out = bytearray()
    for char in text:
        value = _BASE32.find(char)
        if value < 0:
            raise _error("Non-base32 digit found")
        bits = (bits << 5 | value) & 0xFFFF
        count += 5
        if count >= 8:
            count -= 8
            out.append(bits >> count & 255)
    return bytes(out)


def encodebytes(s):
    encoded = b64encode(s)
    return b"".join([encoded[at : at + 76] + b"\n" for at in range(0, len(encoded), 76)])


decodebytes = b64decode
