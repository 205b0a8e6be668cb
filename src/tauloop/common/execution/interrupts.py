"""Ctrl-C during long calculations: they stop at once, or soon after with the best result so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

X = TypeVar("X")
Y = TypeVar("Y")


#: Interval at which the main thread checks whether a search has ended, s.
CHECK_INTERVAL = 0.2
#: Time that a search has to end after an interrupt, s.
GRACE_PERIOD = 1.0


def interruptible(function: Callable[[X], Y], x: X) -> Y:
    """Return function(x); Ctrl-C ends the wait at once, even while compiled code runs.

    Python handles an interrupt only when its main thread returns from compiled code. The function
    therefore runs in another thread while the main thread waits. After an interrupt, that thread
    continues to its end, and its result is ignored.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C. A custom signal handler may raise another error.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(x)
    # Imported here, because the import is slow and the calculation may need no thread.
    from concurrent.futures import Future

    future: Future[Y] = Future()

    def work() -> None:
        try:
            future.set_result(function(x))
        except BaseException as error:  # The waiting thread raises it again.
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future.result()


def run_in_abandonable_thread(search: Callable[[Callable[[], bool]], None]) -> bool:
    """Run a search in a thread that is abandoned after an interrupt.

    The search must store intermediate results. Compiled solvers may run for many seconds without a
    check; therefore the main thread only waits. An interrupt sets a flag that requests the search
    to end. After `GRACE_PERIOD` the thread is abandoned and ends at its next check. Only the main
    thread of a process handles interrupts. In other threads, the search runs in the calling thread
    without this protection.

    Args:
        search: the search. Its argument is a function that returns whether the search must end.

    Returns:
        Whether the search was interrupted.
    """
    is_interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        search(is_interrupted.is_set)
        return False
    errors: list[BaseException] = []

    def run() -> None:
        try:
            search(is_interrupted.is_set)
        except BaseException as error:  # The calling thread raises it again.
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    previous_handler = signal.signal(signal.SIGINT, lambda *_: is_interrupted.set())
    try:
        thread.start()
        while thread.is_alive() and not is_interrupted.is_set():
            thread.join(CHECK_INTERVAL)
        thread.join(GRACE_PERIOD)
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if errors:
        raise errors[0]
    return is_interrupted.is_set()


@contextmanager
def deferred() -> Iterator[None]:
    """Delay interrupts inside a `with` block that starts a child process and stores its handle.

    An interrupt inside `subprocess.Popen` would lose the handle of a running process. Only the main
    thread receives interrupts.
    """
    previous_handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or previous_handler is None:
        yield
        return
    pending: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
        if pending:
            signal.raise_signal(signal.SIGINT)
