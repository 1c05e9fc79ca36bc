# The tower of numbers, for `isinstance`.

from abc import ABC


class Number(ABC):
    def _check_(value):
        return isinstance(value, (int, bool, float, complex)) or type(value).__name__ in ("Decimal", "Fraction")


class Complex(Number):
    def _check_(value):
        return isinstance(value, (int, bool, float, complex)) or type(value).__name__ == "Fraction"


class Real(Complex):
    def _check_(value):
        return isinstance(value, (int, bool, float)) or type(value).__name__ == "Fraction"


class Rational(Real):
    def _check_(value):
        return isinstance(value, (int, bool)) or type(value).__name__ == "Fraction"


class Integral(Rational):
    def _check_(value):
        return isinstance(value, (int, bool))
