# MD5, SHA-1 and SHA-512 as their standards have them: the engine's own C has SHA-256 only.

_M32 = 0xFFFFFFFF
_M64 = (1 << 64) - 1


def _padded(data, block, order):
    size = len(data)
    room = 8 if block == 64 else 16
    zeros = -(size + 1 + room) % block
    return data + b"\x80" + bytes(zeros) + (8 * size).to_bytes(room, order)


def _rotated(value, count):
    return (value << count | value >> (32 - count)) & _M32


_SHIFTS = (7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21)
_tables = {}


def _sines():
    from umath import sin

    return [int(abs(sin(step + 1)) * 4294967296) & _M32 for step in range(64)]


def md5(data):
    if "md5" not in _tables:
        _tables["md5"] = _sines()
    table = _tables["md5"]
    state = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]
    data = _padded(data, 64, "little")
    for at in range(0, len(data), 64):
        words = [int.from_bytes(data[at + 4 * i : at + 4 * i + 4], "little") for i in range(16)]
        a, b, c, d = state
        for step in range(64):
            if step < 16:
                mixed, index = b & c | ~b & d, step
            elif step < 32:
                mixed, index = d & b | ~d & c, (5 * step + 1) % 16
            elif step < 48:
                mixed, index = b ^ c ^ d, (3 * step + 5) % 16
            else:
                mixed, index = c ^ (b | ~d & _M32), 7 * step % 16
            total = (a + mixed + table[step] + words[index]) & _M32
            a, d, c = d, c, b
            b = (b + _rotated(total, _SHIFTS[step // 16 * 4 + step % 4])) & _M32
        state = [(one + other) & _M32 for one, other in zip(state, (a, b, c, d))]
    return b"".join([word.to_bytes(4, "little") for word in state])


def sha1(data):
    state = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0]
    data = _padded(data, 64, "big")
    for at in range(0, len(data), 64):
        words = [int.from_bytes(data[at + 4 * i : at + 4 * i + 4], "big") for i in range(16)]
        for i in range(16, 80):
            words.append(_rotated(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1))
        a, b, c, d, e = state
        for step in range(80):
            if step < 20:
                mixed, constant = b & c | ~b & d, 0x5A827999
            elif step < 40:
                mixed, constant = b ^ c ^ d, 0x6ED9EBA1
            elif step < 60:
                mixed, constant = b & c | b & d | c & d, 0x8F1BBCDC
            else:
                mixed, constant = b ^ c ^ d, 0xCA62C1D6
            total = (_rotated(a, 5) + mixed + e + constant + words[step]) & _M32
            a, b, c, d, e = total, a, _rotated(b, 30), c, d
        state = [(one + other) & _M32 for one, other in zip(state, (a, b, c, d, e))]
    return b"".join([word.to_bytes(4, "big") for word in state])


def _primes(count):
    found = []
    number = 2
    while len(found) < count:
        if all([number % prime for prime in found]):
            found.append(number)
        number += 1
    return found


def _root(value, power):
    """The whole root of a whole number."""
    low, high = 0, 1 << 140
    while low < high:
        middle = (low + high + 1) // 2
        if middle**power <= value:
            low = middle
        else:
            high = middle - 1
    return low


def _constants():
    # Fractions of the cube roots of the first primes, and of the square roots of the first eight.
    primes = _primes(80)
    cubes = [_root(prime << 192, 3) & _M64 for prime in primes]
    return cubes, [_root(prime << 128, 2) & _M64 for prime in primes[:8]]


def _turned(value, count):
    return (value >> count | value << (64 - count)) & _M64


def sha512(data):
    if "sha512" not in _tables:
        _tables["sha512"] = _constants()
    table, state = _tables["sha512"]
    data = _padded(data, 128, "big")
    for at in range(0, len(data), 128):
        words = [int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "big") for i in range(16)]
        for i in range(16, 80):
            one, other = words[i - 15], words[i - 2]
            low = _turned(one, 1) ^ _turned(one, 8) ^ one >> 7
            high = _turned(other, 19) ^ _turned(other, 61) ^ other >> 6
            words.append((words[i - 16] + low + words[i - 7] + high) & _M64)
        a, b, c, d, e, f, g, h = state
        for step in range(80):
            high = _turned(e, 14) ^ _turned(e, 18) ^ _turned(e, 41)
            first = h + high + (e & f ^ ~e & g) + table[step] + words[step]
            low = _turned(a, 28) ^ _turned(a, 34) ^ _turned(a, 39)
            second = low + (a & b ^ a & c ^ b & c)
            a, b, c, d, e, f, g, h = (first + second) & _M64, a, b, c, (d + first) & _M64, e, f, g
        state = [(one + other) & _M64 for one, other in zip(state, (a, b, c, d, e, f, g, h))]
    return b"".join([word.to_bytes(8, "big") for word in state])
