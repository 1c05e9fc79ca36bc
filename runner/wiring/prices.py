"""
What models cost, by the package `genai-prices` where it is installed, and by a small table of our own.
"""

from __future__ import annotations

from functools import cache
from importlib import util
from typing import TYPE_CHECKING, Final

from runner.policy.prices import FREE, PICO, PINNED, Price

if TYPE_CHECKING:
    from runner.policy.prices import Prices

_PACKAGE: Final = "genai-prices"
_MILLION: Final = 1_000_000


def price_table() -> Prices:
    """
    The prices of this host. The package is not imported before a price is asked for.
    """
    return _Packaged() if util.find_spec("genai_prices") is not None else PINNED


class _Packaged:
    """
    The data that the installed package carries; nothing is fetched. It is approximate where a model has
    several prices: by the hour, or by the length of a conversation.
    """

    id = _PACKAGE

    @property
    def version(self) -> str:
        """
        The package's.
        """
        from importlib import metadata  # noqa: PLC0415 - costs a tenth of the time that a start may take

        return metadata.version(_PACKAGE)

    def price(self, model: str) -> Price | None:
        """
        What `PROVIDER/MODEL` costs.
        """
        provider, _, name = model.partition("/")
        return FREE if provider == "scripted" else _price(name)


@cache
def _price(name: str) -> Price | None:
    from genai_prices import Usage, calc_price  # noqa: PLC0415 - half a second, and only for real models

    def cost(usage: Usage) -> int:
        return round(calc_price(usage, name).total_price * PICO / _MILLION)

    try:
        return Price(
            input=cost(Usage(input_tokens=_MILLION)),
            output=cost(Usage(output_tokens=_MILLION)),
            cache_read=cost(Usage(input_tokens=_MILLION, cache_read_tokens=_MILLION)),
            cache_write=cost(Usage(input_tokens=_MILLION, cache_write_tokens=_MILLION)),
        )
    except (LookupError, ValueError):
        return PINNED.price(f"any/{name}")
