# The engine's functions, and those it lacks.

from umath import *

inf = float("inf")
nan = float("nan")
pi, e = 3.141592653589793, 2.718281828459045
tau = 2 * pi


def gcd(*numbers):
    result = 0
    for number in numbers:
        number = abs(_whole(number))
        while number:
            result, number = number, result % number
    return result


def lcm(*numbers):
    result = 1
    for number in numbers:
        number = abs(_whole(number))
        if not number:
            return 0
        result = result // gcd(result, number) * number
    return result


def _whole(number):
    if isinstance(number, (int, bool)):
        return int(number)
    raise TypeError("'{}' object cannot be interpreted as an integer".format(type(number).__name__))


def prod(iterable, *, start=1):
    for value in iterable:
        start = start * value
    return start


def isqrt(n):
    n = _whole(n)
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if not n:
        return 0
    guess = 1 << (len(bin(n)) - 1) // 2 + 1
    while True:
        better = (guess + n // guess) // 2
        if better >= guess:
            return guess
        guess = better


def factorial(n):
    if isinstance(n, float):
        raise TypeError("'float' object cannot be interpreted as an integer")
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    return _product(2, n) if n > 1 else 1


def _product(low, high):
    # Halves of the same size: the numbers stay small for longest.
    if high - low < 8:
        result = low
        for number in range(low + 1, high + 1):
            result *= number
        return result
    middle = (low + high) // 2
    return _product(low, middle) * _product(middle + 1, high)


def perm(n, k=None):
    if k is None:
        return factorial(n)
    if n < 0 or k < 0:
        raise ValueError("n must be a non-negative integer" if n < 0 else "k must be a non-negative integer")
    return 0 if k > n else prod(range(n - k + 1, n + 1))


def comb(n, k):
    if n < 0 or k < 0:
        raise ValueError("n must be a non-negative integer" if n < 0 else "k must be a non-negative integer")
    if k > n:
        return 0
    k = min(k, n - k)
    result = 1
    for step in range(1, k + 1):
        result = result * (n - k + step) // step
    return result


def hypot(*coordinates):
    largest = max([abs(value) for value in coordinates] or [0.0])
    if not largest or largest == inf:
        return float(largest)
    return largest * sqrt(fsum([(value / largest) ** 2 for value in coordinates]))


def dist(p, q):
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return hypot(*[a - b for a, b in zip(p, q)])


def fsum(iterable):
    # Parts that don't overlap, smallest first: their sum is exact.
    parts = []
    for value in iterable:
        value = float(value)
        kept = 0
        for part in parts:
            if abs(value) < abs(part):
                value, part = part, value
            high = value + part
            low = part - (high - value)
            if low:
                parts[kept] = low
                kept += 1
            value = high
        parts[kept:] = [value]
    return _rounded(parts)


def _rounded(parts):
    total, low = 0.0, 0.0
    at = len(parts)
    while at:
        at -= 1
        before = total
        total = before + parts[at]
        low = parts[at] - (total - before)
        if low:
            break
    if at and (low < 0) == (parts[at - 1] < 0) and low:
        # Half-way between two numbers, what is left decides.
        twice = low * 2
        if total + twice - total == twice:
            total += twice
    return total


def sumprod(p, q):
    if len(p) != len(q):
        raise ValueError("Inputs are not the same length")
    return sum([a * b for a, b in zip(p, q)])


def cbrt(x):
    root = -(abs(x) ** (1 / 3)) if x < 0 else float(x) ** (1 / 3)
    near = round(root) if root == root and abs(root) < 1e15 else None
    return float(near) if near is not None and near**3 == x else root


def exp2(x):
    return 2.0**x


def remainder(x, y):
    if y == 0 or abs(x) == inf:
        raise ValueError("math domain error")
    if abs(y) == inf:
        return float(x)
    left = fmod(abs(x), abs(y))
    other = abs(y) - left
    if left > other or (left == other and fmod(abs(x) - left, 2 * abs(y)) != 0):
        left = -other
    return copysign(1.0, x) * left


def ulp(x):
    x = abs(x)
    if x != x or x == inf:
        return x
    return nextafter(x, inf) - x if x < 1.7976931348623157e308 else 1.99584030953472e292


def nextafter(x, y):
    if x != x or y != y:
        return nan
    if x == y:
        return y
    if x == 0:
        return copysign(5e-324, y)
    from ustruct import pack, unpack

    bits = unpack("<q", pack("<d", x))[0]
    bits += 1 if (y > x) == (x > 0) else -1
    return unpack("<d", pack("<q", bits))[0]


def trunc(x):
    return x.__trunc__() if hasattr(x, "__trunc__") else int(x)
