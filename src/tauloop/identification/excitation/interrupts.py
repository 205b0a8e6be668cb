"""An interrupt (Ctrl-C) as a mark, so that a long search ends with the best so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Within it an interrupt (Ctrl-C) sets a mark instead of raising; only the main thread can see to that."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    former = signal.signal(signal.SIGINT, lambda *_: seen.set())
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGINT, former)
