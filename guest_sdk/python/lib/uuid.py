# Universally unique identifiers.

import _host


class UUID:
    def __init__(self, hex=None, bytes=None, bytes_le=None, fields=None, int=None, version=None):
        if hex is not None:
            digits = hex.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
            if len(digits) != 32:
                raise ValueError("badly formed hexadecimal UUID string")
            number = _int(digits, 16)
        elif bytes is not None:
            if len(bytes) != 16:
                raise ValueError("bytes is not a 16-char string")
            number = _int.from_bytes(bytes, "big")
        elif int is not None:
            number = int
        else:
            raise TypeError("one of the hex, bytes, bytes_le, fields, or int arguments must be given")
        if not 0 <= number < 1 << 128:
            raise ValueError("int is out of range (need a 128-bit value)")
        if version is not None:
            number = number & ~(0xC000 << 48) | 0x8000 << 48
            number = number & ~(0xF000 << 64) | version << 76
        self.int = number

    @property
    def hex(self):
        digits = "%x" % self.int
        return "0" * (32 - len(digits)) + digits

    @property
    def bytes(self):
        return self.int.to_bytes(16, "big")

    @property
    def urn(self):
        return "urn:uuid:" + str(self)

    @property
    def version(self):
        return self.int >> 76 & 15 if self.int >> 62 & 3 == 2 else None

    @property
    def variant(self):
        return "specified in RFC 4122" if self.int >> 62 & 3 == 2 else "reserved"

    @property
    def time_low(self):
        return self.int >> 96

    @property
    def node(self):
        return self.int & (1 << 48) - 1

    def __str__(self):
        digits = self.hex
        return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])

    def __repr__(self):
        return "UUID({!r})".format(str(self))

    def __int__(self):
        return self.int

    def __eq__(self, other):
        return isinstance(other, UUID) and self.int == other.int

    def __lt__(self, other):
        return self.int < other.int

    def __le__(self, other):
        return self.int <= other.int

    def __gt__(self, other):
        return self.int > other.int

    def __ge__(self, other):
        return self.int >= other.int

    def __hash__(self):
        return hash(self.int)


# `int` is the name of a parameter above.
_int = int


def uuid4():
    return UUID(int=_host.random_bits(128), version=4)


def uuid7():
    stamp = _host.now_ms() & (1 << 48) - 1
    return UUID(int=stamp << 80 | _host.random_bits(80), version=7)


def _hashed(kind, namespace, name, version):
    import _digests

    data = namespace.bytes + (name.encode() if isinstance(name, str) else name)
    return UUID(bytes=getattr(_digests, kind)(data)[:16], version=version)


def uuid3(namespace, name):
    return _hashed("md5", namespace, name, 3)


def uuid5(namespace, name):
    return _hashed("sha1", namespace, name, 5)


NAMESPACE_DNS = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
NAMESPACE_URL = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
NAMESPACE_OID = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")
NAMESPACE_X500 = UUID("6ba7b814-9dad-11d1-80b4-00c04fd430c8")
