# Randomness that comes from the host, unless it is seeded. After a restore it goes on differently; of what is seeded,
# the sequence is not that of CPython.

import _host

_M64 = (1 << 64) - 1


class Random:
    def __init__(self, x=None):
        self.seed(x)

    def seed(self, a=None, version=2):
        self._next_gauss = None
        self._state = None
        if a is None:
            return
        if not isinstance(a, int):
            if not isinstance(a, (str, bytes, bytearray, float, bool)):
                text = "The only supported seed types are: None,\nint, float, str, bytes, and bytearray."
                raise TypeError(text)
            from uhashlib import sha256

            data = a.encode() if isinstance(a, str) else repr(a).encode() if isinstance(a, (float, bool)) else bytes(a)
            a = int.from_bytes(sha256(data).digest()[:8], "big")
        a = abs(a)
        folded = 0
        while True:
            folded = (folded ^ a) & _M64
            a >>= 64
            if not a:
                break
            folded = folded * 6364136223846793005 + 1442695040888963407 & _M64
        self._state = folded

    def getstate(self):
        return (1, self._state, self._next_gauss)

    def setstate(self, state):
        _, self._state, self._next_gauss = state

    def getrandbits(self, k):
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        if self._state is None:
            return _host.random_bits(k) if k else 0
        bits, have = 0, 0
        while have < k:
            bits |= self._step() << have
            have += 64
        return bits & (1 << k) - 1

    def _step(self):
        # SplitMix64.
        self._state = z = self._state + 0x9E3779B97F4A7C15 & _M64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _M64
        return z ^ z >> 31

    def random(self):
        return self.getrandbits(53) / 9007199254740992

    def randbytes(self, n):
        return self.getrandbits(8 * n).to_bytes(n, "little") if n else b""

    def _below(self, n):
        size = len(bin(n)) - 2
        value = self.getrandbits(size)
        while value >= n:
            value = self.getrandbits(size)
        return value

    def randrange(self, start, stop=None, step=1):
        if stop is None:
            start, stop = 0, start
        count = len(range(start, stop, step))
        if not count:
            raise ValueError("empty range in randrange({}, {}, {})".format(start, stop, step))
        return start + step * self._below(count)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def choice(self, seq):
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self._below(len(seq))]

    def choices(self, population, weights=None, *, cum_weights=None, k=1):
        size = len(population)
        if weights is not None:
            if cum_weights is not None:
                raise TypeError("Cannot specify both weights and cumulative weights")
            cum_weights, total = [], 0
            for weight in weights:
                total += weight
                cum_weights.append(total)
        if cum_weights is None:
            return [population[self._below(size)] for _ in range(k)]
        if len(cum_weights) != size:
            raise ValueError("The number of weights does not match the population")
        total = cum_weights[-1]
        if total <= 0:
            raise ValueError("Total of weights must be greater than zero")
        from bisect import bisect

        return [population[bisect(cum_weights, self.random() * total, 0, size - 1)] for _ in range(k)]

    def shuffle(self, x):
        for index in range(len(x) - 1, 0, -1):
            other = self._below(index + 1)
            x[index], x[other] = x[other], x[index]

    def sample(self, population, k, *, counts=None):
        pool = list(population)
        if counts is not None:
            pool = [value for value, count in zip(pool, counts) for _ in range(count)]
        if not 0 <= k <= len(pool):
            raise ValueError("Sample larger than population or is negative")
        for index in range(k):
            other = index + self._below(len(pool) - index)
            pool[index], pool[other] = pool[other], pool[index]
        return pool[:k]

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def triangular(self, low=0.0, high=1.0, mode=None):
        part = self.random()
        middle = 0.5 if mode is None else (mode - low) / (high - low)
        if part > middle:
            part, middle, low, high = 1 - part, 1 - middle, high, low
        return low + (high - low) * (part * middle) ** 0.5

    def gauss(self, mu=0.0, sigma=1.0):
        from umath import cos, log, pi, sin, sqrt

        value = self._next_gauss
        self._next_gauss = None
        if value is None:
            angle = self.random() * 2 * pi
            radius = sqrt(-2.0 * log(1.0 - self.random()))
            value = cos(angle) * radius
            self._next_gauss = sin(angle) * radius
        return mu + value * sigma

    normalvariate = gauss

    def lognormvariate(self, mu=0.0, sigma=1.0):
        from umath import exp

        return exp(self.gauss(mu, sigma))

    def expovariate(self, lambd=1.0):
        from umath import log

        return -log(1.0 - self.random()) / lambd

    def betavariate(self, alpha, beta):
        one = self.gammavariate(alpha, 1.0)
        return one / (one + self.gammavariate(beta, 1.0)) if one else 0.0

    def gammavariate(self, alpha, beta):
        from umath import exp, log, sqrt

        if alpha < 1:
            return self.gammavariate(alpha + 1, beta) * (1.0 - self.random()) ** (1 / alpha)
        # Marsaglia and Tsang.
        d = alpha - 1 / 3
        c = 1 / sqrt(9 * d)
        while True:
            x = self.gauss()
            v = (1 + c * x) ** 3
            if v > 0 and log(1.0 - self.random()) < x * x / 2 + d - d * v + d * log(v):
                return d * v * beta

    def paretovariate(self, alpha):
        return (1.0 - self.random()) ** (-1.0 / alpha)


SystemRandom = Random

_shared = Random()

seed, getstate, setstate, getrandbits = _shared.seed, _shared.getstate, _shared.setstate, _shared.getrandbits
random, randbytes, randrange, randint = _shared.random, _shared.randbytes, _shared.randrange, _shared.randint
choice, choices, shuffle, sample = _shared.choice, _shared.choices, _shared.shuffle, _shared.sample
uniform, triangular, gauss, normalvariate = _shared.uniform, _shared.triangular, _shared.gauss, _shared.normalvariate
lognormvariate, expovariate = _shared.lognormvariate, _shared.expovariate
betavariate, gammavariate, paretovariate = _shared.betavariate, _shared.gammavariate, _shared.paretovariate
