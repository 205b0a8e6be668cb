"""The process of a command: open streams, valid environment variables, and prompt interrupts.

Ctrl-C, SIGTERM and SIGHUP end a command within `GRACE_TIME`, also during a long calculation outside
Python.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tauloop.common.names.lazy import without_collection

#: Exit code of a program that Ctrl-C ended (128 plus the signal's number).
INTERRUPTED = 130
#: Time in which a command may clean up and end by itself after Ctrl-C, s. If it leaves temporary
#: files, the next command that writes to the same folder removes them.
GRACE_TIME = 1.0
#: Message after the first Ctrl-C if the command can end with its best result so far.
KEEPING_MESSAGE = b"\nending with the best result so far; press Ctrl-C again to end without it\n"
#: Signals that supervisors, closed terminals and shutdowns send, if the system has them.
END_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
#: Valid terminal sizes in environment variables; other sizes are ignored.
_SIZES = {"COLUMNS": (20, 10_000), "LINES": (4, 10_000)}


def main() -> None:
    """Run the command line; Ctrl-C during its import ends it without a traceback."""
    prepare_process()
    # Imported objects stay until the end. A garbage collection over them, now and at the end, would
    # take a tenth of the time of a short command.
    try:
        with without_collection():
            from tauloop.cli.app import app
        with ends_soon(), streams():
            app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        gc.freeze()


def prepare_process() -> None:
    """Open closed standard streams, and remove environment variables that would make commands fail.

    If stream 0, 1 or 2 is closed, the next opened file gets its number, and the output of libraries
    would be written into this file. Writing to a closed standard output fails, as in other
    programs. Output to a closed standard error is discarded, because a command without errors does
    not need it.
    """
    if sys.stdin is None:
        sys.stdin = open(_null(os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(_null(os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(_null(os.O_WRONLY), "w", encoding="utf-8", buffering=1)
    for name, (smallest, largest) in _SIZES.items():
        size = os.environ.get(name)
        if size is not None and not _is_within(size, smallest, largest):
            del os.environ[name]
    # Figures are written to files; another backend could be missing.
    os.environ["MPLBACKEND"] = "agg"


def _null(flags: int) -> int:
    """Return the opened null device; it gets the lowest free number, that of the closed stream."""
    return os.open(os.devnull, flags)


def _is_within(text: str, smallest: int, largest: int) -> bool:
    """Return whether a text is a whole number in a range."""
    try:
        return smallest <= int(text) <= largest
    except ValueError:
        return False


@contextmanager
def ends_soon(grace: float = GRACE_TIME) -> Iterator[None]:
    """Return a context in which Ctrl-C ends the process after a grace time, even in compiled code.

    SIGTERM and SIGHUP do the same, with the exit codes of shells for them (143 and 129).

    Python's own handler only marks the interrupt. The exception is raised when the main thread
    returns from compiled code, and some libraries suppress it. A search that keeps its best result
    has its own handler (`keeping`): the first Ctrl-C ends the search, the second ends the process.
    Child processes, such as compilers, end with the process. A command that reaches its end after a
    suppressed interrupt counts as interrupted. A command that has kept its best result ends the
    process as soon as the result is written, without waiting for other threads.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    previous_descriptor = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    is_ending = threading.Event()
    keeps_result = threading.Event()
    threading.Thread(
        target=_watch, args=(reading, grace, is_ending, keeps_result), daemon=True
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
                if keeps_result.is_set():
                    end_children()
                    with suppress(OSError):
                        sys.stdout.flush()
                        sys.stderr.flush()
                    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))
                raise
        finally:
            signal.set_wakeup_fd(previous_descriptor)
            os.close(writing)
        if is_ending.is_set():
            end_children()
            if received:
                raise SystemExit(128 + received[0])
            raise KeyboardInterrupt


@contextmanager
def _as_interrupts() -> Iterator[list[int]]:
    """Return a context in which SIGTERM and SIGHUP act as Ctrl-C; its value lists received signals.

    Signals that are ignored (`nohup`) stay ignored. By default these signals would end the
    process at once: its temporary files would stay and its child processes would continue.
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
    """Return a context for a search that catches the first KeyboardInterrupt and keeps its result.

    Ctrl-C raises KeyboardInterrupt with a handler other than Python's, from which `_watch` sees
    that the process must not end yet.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _watch(
    reading: int, grace: float, is_ending: threading.Event, keeps_result: threading.Event
) -> None:
    """End the process `grace` seconds after a signal that a running search does not handle.

    Args:
        reading: pipe from which the numbers of received signals are read.
        grace: time in which the command may end by itself, s.
        is_ending: set when the process is about to end.
        keeps_result: set when the first signal only asks a search to end with its best result.
    """
    received = 0
    with suppress(OSError):
        while signals := os.read(reading, 64):
            ending = [number for number in signals if number in (signal.SIGINT, *END_SIGNALS)]
            received += len(ending)
            is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            if received > 1 or (received and is_default):
                is_ending.set()
                time.sleep(grace)
                if sys.stderr is not None and sys.stderr.isatty():
                    with suppress(OSError):  # the terminal may be closed
                        # Show the cursor, which a progress bar has hidden.
                        os.write(2, b"\x1b[?25h\n")
                end_children()
                os._exit(128 + ending[-1] if ending else INTERRUPTED)
            if ending:
                keeps_result.set()
                with suppress(OSError):
                    os.write(2, KEEPING_MESSAGE)
        os.close(reading)


def end_children() -> None:
    """End all child processes, with their process groups, on systems with /proc."""
    parent_id = os.getpid()
    with suppress(OSError):
        for folder in Path("/proc").glob("[1-9]*"):
            with suppress(OSError, ValueError, IndexError):  # the process may have ended
                # the fields after the program's name, which may contain spaces and parentheses
                status = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2]
                _, parent, group = status.split()[:3]
                child = int(folder.name)
                if int(parent) == parent_id:
                    kill = os.killpg if int(group) == child else os.kill
                    kill(child, signal.SIGKILL)


class _Visible(logging.Formatter):
    """Formatter of warnings as plain text without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        # Rich is slow to import, and most commands log nothing.
        from tauloop.cli.terminal.screen import visible

        return visible(super().format(record))


@contextmanager
def streams() -> Iterator[None]:
    """Return a context for a program whose output may not be writable or encodable.

    Raises:
        SystemExit: with the program's status, or with 2 if the output cannot be written.
    """
    output = sys.stdout
    errors = sys.stderr
    for stream in (output, errors):
        with suppress(AttributeError, ValueError):  # a stream of a test
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    handler = logging.StreamHandler()
    handler.setFormatter(_Visible("%(message)s"))
    logger = logging.getLogger("tauloop")
    logger.addHandler(handler)
    status: SystemExit | None = None
    try:
        try:
            yield
        except SystemExit as end:
            status = end
        # Click has replaced the streams: the reader of the pipe has ended.
        if sys.stdout is not output:
            sys.stdout, sys.stderr = output, errors
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        sys.stdout.flush()
    except OSError as error:
        _drop_output(error)
        raise SystemExit(2) from None
    finally:
        logger.removeHandler(handler)
    if status is not None:
        raise status


def _drop_output(error: OSError) -> None:
    """Report why the output cannot be written, and discard the rest of the output."""
    with suppress(OSError):
        if error.errno != errno.EPIPE:  # the reader has closed the pipe on purpose
            from tauloop.cli.terminal.screen import visible

            target = error.filename or "standard output"
            sys.stderr.write(visible(f"{target}: cannot be written: {error.strerror or error}\n"))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
