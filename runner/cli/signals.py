"""
SIGTERM ends a command the way Ctrl-C does, and only its exit code tells the two apart.
"""

from __future__ import annotations

import signal
import threading
from typing import Any


class Termination:
    """
    Whether this process was asked to terminate.

    The instance is as before the delivery then, and so is a snapshot that was asked for.
    """

    def __init__(self) -> None:
        self.requested = False

    def is_requested(self) -> bool:
        """
        Whether it was.
        """
        return self.requested

    def install(self) -> None:
        """
        Take SIGTERM from now on; does nothing outside the main thread, where Python takes no signals.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, _frame: Any) -> None:
        self.requested = True
        # Whoever sends it twice means it: the second one ends the process on the spot.
        signal.signal(number, signal.SIG_DFL)
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:
            # A shell's background job ignores SIGINT, and so would never hear of this.
            raise KeyboardInterrupt
