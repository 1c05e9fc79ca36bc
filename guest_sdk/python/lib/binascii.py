# The engine's functions, and those it lacks.

from ubinascii import *


class Error(ValueError):
    pass


def crc32(data, value=0):
    value ^= 0xFFFFFFFF
    for byte in bytes(data):
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value ^ 0xFFFFFFFF
