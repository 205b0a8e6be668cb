"""Output to the terminal: text without control characters, and full or closed streams."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

#: Control characters except line ends and tabs; characters that change the direction of text or end
#: lines; surrogates.
CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return text with control characters written out, such as an escape as its number."""
    return CONTROL_CHARACTERS.sub(
        lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text
    )


def json_text(data: Any) -> str:
    """Return plain data as JSON, with control characters as escapes, which mean the same."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class Screen(Console):
    """A console for names from files: no control characters, markup, emoji or number styles."""

    def __init__(self, **options: Any) -> None:
        """See `rich.console.Console`."""
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return segments with visible text; rich's own styles and cursor movements are kept."""
        for segment in super().render(renderable, options):
            if segment.control is None and CONTROL_CHARACTERS.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment

    def on_broken_pipe(self) -> None:
        """Leave a closed pipe to `streams`; Rich would end with the exit code of a doubtful result.

        Raises:
            BrokenPipeError: always.
        """
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Visible(logging.Formatter):
    """Warnings as plain visible text."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


@contextmanager
def streams() -> Iterator[None]:
    """Return a context for a program whose output may not be writable or encodable.

    Raises:
        SystemExit: with the program's status, or 2 where the output cannot be written.
    """
    output, errors = sys.stdout, sys.stderr
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
        # Click replaces a pipe whose reader has ended.
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
    """Report why the output cannot be written, and discard what the streams still hold."""
    with suppress(OSError):
        if error.errno != errno.EPIPE:  # the reader has closed the pipe on purpose
            target = error.filename or "standard output"
            sys.stderr.write(visible(f"{target}: cannot be written: {error.strerror or error}\n"))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
