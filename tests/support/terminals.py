"""The installed program in a terminal: what it shows to a person who looks, its bars of progress among it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The running program, and where what it shows is read; standard output and error are one terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from tauloop.cli import main; main()", *arguments]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    try:
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env
        ) as process:
            os.close(theirs)
            yield process, ours
    finally:
        os.close(ours)


def shown(terminal: int, until: bytes = b"") -> bytes:
    """What it shows up to some words, or (without words, or where they never come) until it ends."""
    seen = b""
    while not until or until not in seen:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux says so where the other side has closed
            return seen
        if not part:
            return seen
        seen += part
    return seen
