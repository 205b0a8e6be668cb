"""Interrupts (Ctrl-C) while something long is at work: it is left at once, or soon, with the best so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

X = TypeVar("X")
Y = TypeVar("Y")


#: Seconds between two looks at a search, and those that it has after an interrupt before it is
#: left.
LOOK, GRACE = 0.2, 1.0


def interruptible(function: Callable[[X], Y], x: X) -> Y:
    """What the function gives, while Ctrl-C ends the wait at once, whatever machine code it is in.

    Python raises an interrupt only when its main thread comes back from machine code. So the
    function works in a thread of its own while the main thread waits; after an interrupt the thread
    goes on unheard until it is done.

    Raises:
        KeyboardInterrupt: Ctrl-C, or whatever the handler of it raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(x)
    future: Future[Y] = Future()

    def work() -> None:
        try:
            future.set_result(function(x))
        except BaseException as error:  # raised again where the result is waited for
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future.result()


def leavable(search: Callable[[Callable[[], bool]], None]) -> bool:
    """Run a search in a thread that may be left; what it has found by then is what it has written down.

    Solvers in machine code look at nothing for many seconds. So the main thread only waits; an
    interrupt sets a mark, at which the search should end, and after `GRACE` it is left alone to end
    at its next look. Only the main thread of a process can see to that; in others the search simply
    runs.

    Args:
        search: called with a function that says whether to end.

    Returns:
        Whether it was interrupted.
    """
    mark = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        search(mark.is_set)
        return False
    errors: list[BaseException] = []

    def run() -> None:
        try:
            search(mark.is_set)
        except BaseException as error:  # raised where it was asked for
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    former = signal.signal(signal.SIGINT, lambda *_: mark.set())
    try:
        thread.start()
        while thread.is_alive() and not mark.is_set():
            thread.join(LOOK)
        thread.join(GRACE)
    finally:
        signal.signal(signal.SIGINT, former)
    if errors:
        raise errors[0]
    return mark.is_set()


@contextmanager
def deferred() -> Iterator[None]:
    """Hold interrupts back while a child process is started, so that it is known before the interrupt is raised.

    An interrupt inside `subprocess.Popen` loses a process that already runs. Only the main thread
    gets interrupts.
    """
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or former is None:
        yield
        return
    pending: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        if pending:
            signal.raise_signal(signal.SIGINT)
