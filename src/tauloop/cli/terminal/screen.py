"""What reaches the terminal: text without signs that would steer it, and streams that are full or closed."""

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

#: Control characters but line ends and tabs; signs that turn the direction of text or end lines;
#: halves of characters.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Text with the signs that would steer a terminal written out, such as an escape as its number."""
    return STEERING.sub(
        lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text
    )


def json_text(data: Any) -> str:
    """Plain data as JSON, with such signs as escapes, which mean the same there."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class Screen(Console):
    """A console on which names from files neither steer the terminal nor are read as markup, emoji or numbers."""

    def __init__(self, **options: Any) -> None:
        """See `rich.console.Console`."""
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments of text, made visible; rich's own styles and movements of the cursor are no text."""
        for segment in super().render(renderable, options):
            if segment.control is None and STEERING.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment

    def on_broken_pipe(self) -> None:
        """Leave a pipe whose reader has ended to `streams`: Rich would end with the exit code of a doubtful result.

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
    """Run a program whose output may not fit, or not be in the terminal's alphabet.

    Raises:
        SystemExit: with the program's status, or 2 where the output cannot be written.
    """
    output, errors = sys.stdout, sys.stderr
    for stream in (output, errors):
        with suppress(AttributeError, ValueError):  # one of a test
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
        # Click puts another one in the place of a pipe whose reader has ended
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
    """State why the output cannot be written, and leave nothing in the streams that would be written at the end."""
    with suppress(OSError):
        if error.errno != errno.EPIPE:  # the reader of a pipe ended it because it has read enough
            place = error.filename or "standard output"
            sys.stderr.write(visible(f"{place}: cannot be written: {error.strerror or error}\n"))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
