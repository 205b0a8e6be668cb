"""Ctrl-C, SIGTERM and SIGHUP end a command soon, also while it is in a long calculation outside Python."""

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
#: Time in which a command may end by itself after Ctrl-C, s: it cleans up then. Temporary files
#: that stay are removed by the next command that writes there.
GRACE = 1.0
#: What the first Ctrl-C says where there is a result to keep.
AGAIN = b"\nending with the result so far; Ctrl-C again ends at once, without it\n"
#: Signals by which supervisors, closed terminals and shutdowns end a program, where the system has
#: them.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def ends_soon(grace: float = GRACE) -> Iterator[None]:
    """Within it Ctrl-C ends the process after a time of grace, whatever its main thread is busy with.

    So do SIGTERM and SIGHUP, with the exit codes that shells give for them (143 and 129).

    Python's own handler only marks the interrupt, and raises when the main thread comes back from
    machine code; some libraries swallow what it raises. A search that keeps its best result has a
    handler of its own: the first Ctrl-C leaves it alone, a second one does not. What the process
    has started, such as compilers, ends with it. A command that a swallowed interrupt did not keep
    from its own end counts as interrupted all the same. One that has kept its best result ends the
    process as soon as this is written: what was at work is not waited for.
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
            if received and end.code == INTERRUPTED:  # typer has taken the signal for Ctrl-C
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
    """Within it SIGTERM and SIGHUP do what Ctrl-C does, unless they are ignored (`nohup`); those that came.

    By default they end the process where it is: its temporary files stay, and what it has started
    goes on.
    """
    received: list[int] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        received.append(number)
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    replaced = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, interrupted)
    try:
        yield received
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def keeping() -> Iterator[None]:
    """Within it the first Ctrl-C raises as ever, by a handler of its own: there is a search whose best is kept."""
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
            ending = [number for number in signals if number in (signal.SIGINT, *ENDING)]
            asked += len(ending)
            if asked > 1 or (
                asked and signal.getsignal(signal.SIGINT) is signal.default_int_handler
            ):
                is_ending.set()
                time.sleep(grace)
                if sys.stderr is not None and sys.stderr.isatty():
                    with suppress(OSError):  # its terminal may be closed
                        # the cursor, which a bar of progress has hidden
                        os.write(2, b"\x1b[?25h\n")
                end_children()
                os._exit(128 + ending[-1] if ending else INTERRUPTED)
            if ending:
                was_asked.set()
                with suppress(OSError):
                    os.write(2, AGAIN)
        os.close(reading)


def end_children() -> None:
    """End all processes that this one has started, and theirs where they lead a group; where the system lists them."""
    own = os.getpid()
    with suppress(OSError):
        for place in Path("/proc").glob("[1-9]*"):
            with suppress(OSError, ValueError, IndexError):  # it has ended in the meantime
                _, parent, group = (
                    (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[:3]
                )
                child = int(place.name)
                if int(parent) == own:
                    (os.killpg if int(group) == child else os.kill)(child, signal.SIGKILL)
