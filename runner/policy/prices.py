"""
What models cost, as a table with an id and a version: an approximation, and no bill.

Amounts are integers of 10^-12 US dollars, so that sums are exact and the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

PICO: Final = 10**12
_PICO_PER_USD_PER_MILLION: Final = 10**6


@dataclass(frozen=True, slots=True)
class Price:
    """
    Of one model, in 10^-12 US dollars for each token.

    Attributes:
        input: Read, cache aside.
        output: Written.
        cache_read: Read from a cache.
        cache_write: Read and put into one.
    """

    input: int
    output: int
    cache_read: int
    cache_write: int

    def cost(
        self, input_tokens: int, output_tokens: int, cache_read_tokens: int = 0, cache_write_tokens: int = 0
    ) -> int:
        """
        What a request costs; `input_tokens` has those of the cache in it.
        """
        fresh = max(0, input_tokens - cache_read_tokens - cache_write_tokens)
        return (
            fresh * self.input
            + output_tokens * self.output
            + cache_read_tokens * self.cache_read
            + cache_write_tokens * self.cache_write
        )

    def at_most(self, input_tokens: int, output_tokens: int) -> int:
        """
        The most that a request of so many tokens can cost.
        """
        return input_tokens * max(self.input, self.cache_write) + output_tokens * self.output


def per_million(
    input_usd: float,
    output_usd: float,
    cache_read_usd: float | None = None,
    cache_write_usd: float | None = None,
) -> Price:
    """
    A price as vendors list it: US dollars for a million tokens. What a cache costs is what reading costs,
    where they don't say.
    """
    read = input_usd if cache_read_usd is None else cache_read_usd
    write = input_usd if cache_write_usd is None else cache_write_usd
    return Price(*(round(usd * _PICO_PER_USD_PER_MILLION) for usd in (input_usd, output_usd, read, write)))


class Prices(Protocol):
    """
    Prices by model, with the id and the version of whose they are.
    """

    @property
    def id(self) -> str:
        """
        Whose table.
        """

    @property
    def version(self) -> str:
        """
        Which of them.
        """

    def price(self, model: str) -> Price | None:
        """
        What `PROVIDER/MODEL` costs, or `None` where nobody knows.
        """


@dataclass(frozen=True, slots=True)
class PriceTable:
    """
    Prices by model, of one date.

    Attributes:
        id: Whose table.
        version: Which of them.
        prices: By the model's name at its provider; the longest name that a model's begins with counts.
    """

    id: str
    version: str
    prices: Mapping[str, Price] = field(repr=False)

    def price(self, model: str) -> Price | None:
        """
        What `PROVIDER/MODEL` costs, or `None` where nobody knows.
        """
        name = model.partition("/")[2]
        if model.startswith("scripted/"):
            return FREE
        known = [key for key in self.prices if name == key or name.startswith(f"{key}-")]
        return self.prices[max(known, key=len)] if known else None


FREE: Final = Price(0, 0, 0, 0)

PINNED: Final = PriceTable(
    "runner",
    "2026-11-30",
    {
        "claude-haiku-4-5": per_million(1, 5, 0.1, 1.25),
        "claude-sonnet-4-5": per_million(3, 15, 0.3, 3.75),
        "claude-opus-4-5": per_million(5, 25, 0.5, 6.25),
        "gpt-5": per_million(1.25, 10, 0.125),
        "gpt-5-mini": per_million(0.25, 2, 0.025),
        "gpt-5-nano": per_million(0.05, 0.4, 0.005),
        "gpt-4.1": per_million(2, 8, 0.5),
        "gpt-4.1-mini": per_million(0.4, 1.6, 0.1),
        "deepseek-chat": per_million(0.27, 1.1, 0.027, 0),
    },
)
"""
For a host without the extra `prices`: a few models, as their vendors listed them.
"""


def show_usd(pico: int) -> str:
    """
    An amount for a reader: `$0.0123`.
    """
    return f"${pico / PICO:.4f}"
