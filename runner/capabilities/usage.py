"""
What an instance has used of models. What is unknown is `None` and stays so: a sum with an unknown part is
not known either, and zero would be a lie.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.codec import Value
from runner.package.fields import Fields, or_null, tally
from runner.providers.base import Usage


@dataclass(slots=True)
class UsageMeter:
    """
    The running totals of one instance.

    Attributes:
        calls: Requests to a model that ended, however they did.
        input_tokens: Tokens read, or `None` when unknown.
        output_tokens: Tokens written, or `None` when unknown.
    """

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    def add(self, usage: Usage) -> None:
        """
        Count one request.
        """
        self.calls += 1
        self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
        self.output_tokens = _sum(self.output_tokens, usage.output_tokens)

    def to_wire(self) -> Value:
        """
        The totals as the ABI's `usage`.
        """
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }

    @classmethod
    def from_wire(cls, wire: Value) -> UsageMeter:
        """
        The totals that `to_wire` wrote.

        Raises:
            FieldProblem: If they are none; a `ValueError` that says where and why.
        """
        with Fields(wire) as fields:
            return cls(
                calls=fields.required("calls", tally),
                input_tokens=fields.required("input_tokens", or_null(tally)),
                output_tokens=fields.required("output_tokens", or_null(tally)),
            )


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
