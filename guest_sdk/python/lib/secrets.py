# Randomness that nobody can foresee: straight from the host.

import _host
from hmac import compare_digest
from random import SystemRandom

DEFAULT_ENTROPY = 32


def token_bytes(nbytes=None):
    return _host.random_bytes(DEFAULT_ENTROPY if nbytes is None else nbytes)


def token_hex(nbytes=None):
    return "".join(["%02x" % byte for byte in token_bytes(nbytes)])


def token_urlsafe(nbytes=None):
    from base64 import urlsafe_b64encode

    return str(urlsafe_b64encode(token_bytes(nbytes)), "utf-8").rstrip("=")


def randbits(k):
    size = (k + 7) // 8
    return int.from_bytes(token_bytes(size), "big") >> (8 * size - k) if k else 0


def randbelow(exclusive_upper_bound):
    if exclusive_upper_bound <= 0:
        raise ValueError("Upper bound must be positive.")
    size = len(bin(exclusive_upper_bound)) - 2
    value = randbits(size)
    while value >= exclusive_upper_bound:
        value = randbits(size)
    return value


def choice(sequence):
    return sequence[randbelow(len(sequence))]
