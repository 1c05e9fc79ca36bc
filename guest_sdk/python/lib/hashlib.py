# The engine's digests, with `hexdigest`.

import uhashlib

_SIZES = {"md5": (16, 64), "sha1": (20, 64), "sha256": (32, 64)}

algorithms_available = algorithms_guaranteed = set(_SIZES)


class _Hash:
    def __init__(self, name, data):
        if name not in _SIZES:
            raise ValueError("unsupported hash type {}: an agent has {}".format(name, ", ".join(sorted(_SIZES))))
        self.name = name
        self.digest_size, self.block_size = _SIZES[name]
        # The engine's digests end when they are read, so what they were made of is kept.
        self._data = bytes(data)

    def update(self, data):
        self._data += bytes(data)

    def digest(self):
        return getattr(uhashlib, self.name)(self._data).digest()

    def hexdigest(self):
        return "".join(["%02x" % byte for byte in self.digest()])

    def copy(self):
        return _Hash(self.name, self._data)


def new(name, data=b"", **options):
    return _Hash(name.lower().replace("-", ""), data)


def md5(data=b"", **options):
    return _Hash("md5", data)


def sha1(data=b"", **options):
    return _Hash("sha1", data)


def sha256(data=b"", **options):
    return _Hash("sha256", data)
