"""Ctrl-C, SIGTERM and SIGHUP end a command soon, also during a long calculation outside Python."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130
#: Time in which a command may clean up and end by itself after Ctrl-C, s. The next command that
#: writes there removes temporary files that are left.
GRACE_TIME = 1.0
#: Message of the first Ctrl-C if there is a result to keep.
KEEPING_MESSAGE = b"\nending with the result so far; Ctrl-C again ends at once, without it\n"
#: Signals of supervisors, closed terminals and shutdowns, if the system has them.
END_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def ends_soon(grace: float = GRACE_TIME) -> Iterator[None]:
    """Return a context in which Ctrl-C ends the process after a grace time, whatever it runs.

    SIGTERM and SIGHUP do the same, with the exit codes of shells for them (143 and 129).

    Python's own handler only marks the interrupt and raises when the main thread returns from
    machine code, and some libraries suppress what it raises. A search that keeps its best result
    has its own handler: the first Ctrl-C does not end it, the second does. Child processes, such
    as compilers, end with the process. A command that reaches its end after a suppressed interrupt
    counts as interrupted. A command that has kept its best result ends the process as soon as the
    result is written, without waiting for other threads.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    is_ending, was_asked = threading.Event(), threading.Event()
    threading.Thread(
        target=_watch, args=(reading, grace, is_ending, was_asked), daemon=True
    ).start()
    with _as_interrupts() as received:
        try:
            yield
        except KeyboardInterrupt:
            end_children()
            if received:
                raise SystemExit(128 + received[0]) from None
            raise
        except SystemExit as end:
            if received and end.code == INTERRUPTED:  # typer has treated the signal as Ctrl-C
                end_children()
                raise SystemExit(128 + received[0]) from None
            if not is_ending.is_set():
                if was_asked.is_set():
                    end_children()
                    with suppress(OSError):
                        sys.stdout.flush()
                        sys.stderr.flush()
                    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))
                raise
        finally:
            signal.set_wakeup_fd(former)
            os.close(writing)
        if is_ending.is_set():
            end_children()
            if received:
                raise SystemExit(128 + received[0])
            raise KeyboardInterrupt


@contextmanager
def _as_interrupts() -> Iterator[list[int]]:
    """Return a context in which SIGTERM and SIGHUP act as Ctrl-C, with those received.

    Signals that are ignored (`nohup`) stay ignored. By default these signals would end the process
    at
    once: its temporary files would stay and its child processes would continue.
    """
    received: list[int] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        received.append(number)
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    replaced = [number for number in END_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, interrupted)
    try:
        yield received
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def keeping() -> Iterator[None]:
    """Return a context of a search that keeps its best result: the first Ctrl-C raises as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _watch(
    reading: int, grace: float, is_ending: threading.Event, was_asked: threading.Event
) -> None:
    asked = 0
    with suppress(OSError):
        while signals := os.read(reading, 64):
            ending = [number for number in signals if number in (signal.SIGINT, *END_SIGNALS)]
            asked += len(ending)
            if asked > 1 or (
                asked and signal.getsignal(signal.SIGINT) is signal.default_int_handler
            ):
                is_ending.set()
                time.sleep(grace)
                if sys.stderr is not None and sys.stderr.isatty():
                    with suppress(OSError):  # the terminal may be closed
                        # Show the cursor, which a progress bar has hidden.
                        os.write(2, b"\x1b[?25h\n")
                end_children()
                os._exit(128 + ending[-1] if ending else INTERRUPTED)
            if ending:
                was_asked.set()
                with suppress(OSError):
                    os.write(2, KEEPING_MESSAGE)
        os.close(reading)


def end_children() -> None:
    """End all child processes, with their process groups, on systems with /proc."""
    parent_id = os.getpid()
    with suppress(OSError):
        for folder in Path("/proc").glob("[1-9]*"):
            with suppress(OSError, ValueError, IndexError):  # the process may have ended
                status = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2]
                _, parent, group = status.split()[:3]
                child = int(folder.name)
                if int(parent) == parent_id:
                    (os.killpg if int(group) == child else os.kill)(child, signal.SIGKILL)
