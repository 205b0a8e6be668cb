"""Interrupts (Ctrl-C) while something long is at work: as a mark, or at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

X = TypeVar("X")
Y = TypeVar("Y")


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


def interruptible(function: Callable[[X], Y], x: X) -> Y:
    """What the function gives, while Ctrl-C ends the wait at once, whatever machine code it is in.

    Python raises an interrupt only when its main thread comes back from machine code. So the function works in a thread
    of its own while the main thread waits; after an interrupt the thread goes on unheard until it is done.

    Raises:
        KeyboardInterrupt: Ctrl-C, or whatever the handler of it raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(x)
    found: Future[Y] = Future()

    def work() -> None:
        try:
            found.set_result(function(x))
        except BaseException as error:  # raised again where the result is waited for
            found.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return found.result()
