"""Ctrl-C ends a command soon, also while it is in a long calculation outside Python."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130
#: Time in which a command may end by itself after Ctrl-C, s: it cleans up then. Temporary files that stay are removed
#: by the next command that writes there.
GRACE = 1.0
#: What the first Ctrl-C says where a search has a result to keep.
AGAIN = b"\nending with the best so far; Ctrl-C again ends at once, without it\n"


@contextmanager
def ends_soon(grace: float = GRACE) -> Iterator[None]:
    """Within it Ctrl-C ends the process after a time of grace, whatever its main thread is busy with.

    Python's own handler only marks the interrupt, and raises when the main thread comes back from machine code; some
    libraries swallow what it raises. A search that keeps its best result has a handler of its own: the first Ctrl-C
    leaves it alone, a second one does not. What the process has started, such as compilers, ends with it. A command
    that a swallowed interrupt did not keep from its own end counts as interrupted all the same. One that has kept its
    best result ends the process as soon as this is written: what was at work is not waited for.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    is_ending, was_asked = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(reading, grace, is_ending, was_asked), daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        end_children()
        raise
    except SystemExit as end:
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
        raise KeyboardInterrupt


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


def _watch(reading: int, grace: float, is_ending: threading.Event, was_asked: threading.Event) -> None:
    asked = 0
    with suppress(OSError):
        while signals := os.read(reading, 64):
            asked += signals.count(signal.SIGINT)
            if asked > 1 or (asked and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
                is_ending.set()
                time.sleep(grace)
                if sys.stderr is not None and sys.stderr.isatty():
                    os.write(2, b"\x1b[?25h\n")  # the cursor, which a bar of progress has hidden
                end_children()
                os._exit(INTERRUPTED)
            if signal.SIGINT in signals:
                was_asked.set()
                os.write(2, AGAIN)
        os.close(reading)


def end_children() -> None:
    """End all processes that this one has started, and theirs where they lead a group; where the system lists them."""
    own = os.getpid()
    with suppress(OSError):
        for place in Path("/proc").glob("[1-9]*"):
            with suppress(OSError, ValueError, IndexError):  # it has ended in the meantime
                _, parent, group = (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[:3]
                child = int(place.name)
                if int(parent) == own:
                    (os.killpg if int(group) == child else os.kill)(child, signal.SIGKILL)
