"""What no text file of the repository has; run before a commit on the files that it changes, by `make check` on all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

#: Files of which every byte is meant: what broke a reader once.
AS_THEY_ARE = ("tests/fuzz/", "tests/cases/", "tests/golden/")
#: A file is read by people; data lie beside the repository.
LARGEST = 500_000
#: What `git merge` leaves where nobody has decided.
CONFLICT = ("<" * 7 + " ", ">" * 7 + " ")


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a text file: a line each."""
    if path.as_posix().startswith(AS_THEY_ARE):
        return
    content = path.read_bytes()
    if len(content) > LARGEST:
        yield f"{path}: {len(content)} bytes, at most {LARGEST}"
    if b"\0" in content:
        return
    text = content.decode("utf-8")
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{path}: does not end with one newline"
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield f"{path}, line {number}: blanks at its end"
        if line.startswith(CONFLICT):
            yield f"{path}, line {number}: an undecided merge"
    if "\r" in text:
        yield f"{path}: carriage returns"


if __name__ == "__main__":
    problems = [fault for name in sys.argv[1:] for fault in faults(Path(name))]
    print("\n".join(problems))
    sys.exit(bool(problems))
