# Digests: SHA-256 is the engine's, the others are in Python and slow.

_SIZES = {"md5": (16, 64), "sha1": (20, 64), "sha256": (32, 64), "sha512": (64, 128)}

algorithms_available = algorithms_guaranteed = set(_SIZES)


class _Hash:
    def __init__(self, name, data):
        if name not in _SIZES:
            raise ValueError("unsupported hash type {}: an agent has {}".format(name, ", ".join(sorted(_SIZES))))
        self.name = name
        self.digest_size, self.block_size = _SIZES[name]
        # A digest may be read more than once, so what it is made of is kept.
        self._parts = [bytes(data)]

    def update(self, data):
        self._parts.append(bytes(data))

    def digest(self):
        data = b"".join(self._parts)
        self._parts = [data]
        if self.name == "sha256":
            from uhashlib import sha256

            return sha256(data).digest()
        import _digests

        return getattr(_digests, self.name)(data)

    def hexdigest(self):
        return "".join(["%02x" % byte for byte in self.digest()])

    def copy(self):
        return _Hash(self.name, b"".join(self._parts))


def new(name, data=b"", **options):
    return _Hash(name.lower().replace("-", ""), data)


def md5(data=b"", **options):
    return _Hash("md5", data)


def sha1(data=b"", **options):
    return _Hash("sha1", data)


def sha256(data=b"", **options):
    return _Hash("sha256", data)


def sha512(data=b"", **options):
    return _Hash("sha512", data)
