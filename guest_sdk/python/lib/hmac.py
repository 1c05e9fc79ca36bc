# Keyed digests.

import hashlib


class HMAC:
    def __init__(self, key, msg=None, digestmod=""):
        if not digestmod:
            raise TypeError("Missing required argument 'digestmod'.")
        make = digestmod if callable(digestmod) else lambda data=b"": hashlib.new(digestmod, data)
        self._make = make
        inner = make()
        self.name = "hmac-" + inner.name
        self.digest_size, self.block_size = inner.digest_size, inner.block_size
        if len(key) > self.block_size:
            key = make(key).digest()
        self._key = key + bytes(self.block_size - len(key))
        self._inner = make(bytes([byte ^ 0x36 for byte in self._key]))
        if msg is not None:
            self.update(msg)

    def update(self, msg):
        self._inner.update(msg)

    def digest(self):
        return self._make(bytes([byte ^ 0x5C for byte in self._key]) + self._inner.digest()).digest()

    def hexdigest(self):
        return "".join(["%02x" % byte for byte in self.digest()])


def new(key, msg=None, digestmod=""):
    return HMAC(key, msg, digestmod)


def digest(key, msg, digest):
    return HMAC(key, msg, digest).digest()


def compare_digest(a, b):
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    different = len(a) ^ len(b)
    for one, other in zip(a, b):
        different |= one ^ other
    return not different
