# Statistics of numbers: ints, floats, decimals and fractions.

from math import fsum, sqrt


class StatisticsError(ValueError):
    pass


def _values(data, name, least=1):
    values = list(data)
    if len(values) < least:
        if least == 1:
            raise StatisticsError("{} requires at least one data point".format(name))
        raise StatisticsError("{} requires at least two data points".format(name))
    return values


def _total(values):
    return fsum(values) if any([isinstance(value, float) for value in values]) else sum(values)


def _divided(total, count):
    if isinstance(total, int) and total % count == 0:
        return total // count
    return total / count


def mean(data):
    values = _values(data, "mean")
    return _divided(_total(values), len(values))


def fmean(data, weights=None):
    values = [float(value) for value in _values(data, "fmean")]
    if weights is None:
        return fsum(values) / len(values)
    weights = list(weights)
    if len(weights) != len(values):
        raise StatisticsError("data and weights must be the same length")
    return fsum([value * weight for value, weight in zip(values, weights)]) / fsum(weights)


def geometric_mean(data):
    from umath import exp, log

    values = _values(data, "geometric mean")
    if any([value <= 0 for value in values]):
        raise StatisticsError("No negative inputs allowed")
    return exp(fsum([log(value) for value in values]) / len(values))


def harmonic_mean(data, weights=None):
    values = _values(data, "harmonic_mean")
    weights = [1] * len(values) if weights is None else list(weights)
    if any([value < 0 for value in values]):
        raise StatisticsError("harmonic mean does not support negative values")
    if any([value == 0 for value in values]):
        return 0
    from fractions import Fraction

    total = Fraction(0)
    for value, weight in zip(values, weights):
        total += Fraction(weight) / Fraction(value)
    return float(Fraction(_total(weights)) / total)


def median(data):
    values = sorted(_median_values(data))
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def median_low(data):
    values = sorted(_median_values(data))
    return values[(len(values) - 1) // 2]


def median_high(data):
    values = sorted(_median_values(data))
    return values[len(values) // 2]


def _median_values(data):
    values = list(data)
    if not values:
        raise StatisticsError("no median for empty data")
    return values


def mode(data):
    found = multimode(data)
    if not found:
        raise StatisticsError("no mode for empty data")
    return found[0]


def multimode(data):
    counts = {}
    for value in data:
        counts[value] = counts.get(value, 0) + 1
    top = max(counts.values()) if counts else 0
    return [value for value, count in counts.items() if count == top]


def _squares(values, center):
    center = mean(values) if center is None else center
    return _total([(value - center) ** 2 for value in values])


def variance(data, xbar=None):
    values = _values(data, "variance", 2)
    return _divided(_squares(values, xbar), len(values) - 1)


def pvariance(data, mu=None):
    values = _values(data, "pvariance")
    return _divided(_squares(values, mu), len(values))


def stdev(data, xbar=None):
    values = _values(data, "stdev", 2)
    return _root(_divided(_squares(values, xbar), len(values) - 1))


def pstdev(data, mu=None):
    values = _values(data, "pstdev")
    return _root(_divided(_squares(values, mu), len(values)))


def _root(value):
    return value.sqrt() if hasattr(value, "sqrt") else sqrt(value)


def quantiles(data, *, n=4, method="exclusive"):
    if n < 1:
        raise StatisticsError("n must be at least 1")
    values = sorted(data)
    size = len(values)
    if size < 2:
        raise StatisticsError("must have at least two data points")
    cuts = []
    for step in range(1, n):
        if method == "inclusive":
            at, rest = divmod(step * (size - 1), n)
            cuts.append((values[at] * (n - rest) + values[at + 1] * rest) / n)
        elif method == "exclusive":
            at = min(max(step * (size + 1) // n, 1), size - 1)
            rest = step * (size + 1) - at * n
            cuts.append((values[at - 1] * (n - rest) + values[at] * rest) / n)
        else:
            raise ValueError("Unknown method: {!r}".format(method))
    return cuts


def covariance(x, y):
    x, y = list(x), list(y)
    _check_pair(x, y, "covariance")
    x_mean, y_mean = fmean(x), fmean(y)
    return fsum([(a - x_mean) * (b - y_mean) for a, b in zip(x, y)]) / (len(x) - 1)


def correlation(x, y):
    x, y = list(x), list(y)
    _check_pair(x, y, "correlation")
    x_mean, y_mean = fmean(x), fmean(y)
    both = fsum([(a - x_mean) * (b - y_mean) for a, b in zip(x, y)])
    scale = sqrt(fsum([(a - x_mean) ** 2 for a in x]) * fsum([(b - y_mean) ** 2 for b in y]))
    if not scale:
        raise StatisticsError("at least one of the inputs is constant")
    return both / scale


def linear_regression(x, y):
    from collections import namedtuple

    x, y = list(x), list(y)
    _check_pair(x, y, "linear regression")
    x_mean, y_mean = fmean(x), fmean(y)
    squares = fsum([(a - x_mean) ** 2 for a in x])
    if not squares:
        raise StatisticsError("x is constant")
    slope = fsum([(a - x_mean) * (b - y_mean) for a, b in zip(x, y)]) / squares
    return namedtuple("LinearRegression", ("slope", "intercept"))(slope, y_mean - slope * x_mean)


def _check_pair(x, y, name):
    if len(x) != len(y):
        raise StatisticsError("{} requires that both inputs have same number of data points".format(name))
    if len(x) < 2:
        raise StatisticsError("{} requires at least two data points".format(name))
