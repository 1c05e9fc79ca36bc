"""
What is raised below an SDK, and goes through it as it is.
"""

from __future__ import annotations

from runner.errors import ProviderError


class Refused(Exception):
    """
    Raised by a transport when a request is not to be sent, or a response not to be read.

    Args:
        error: Why, for whoever asked.
    """

    def __init__(self, error: ProviderError) -> None:
        super().__init__()
        self.error = error
