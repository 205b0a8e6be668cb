"""Check text files for common faults; run before a commit on the changed files, and by `make check` on all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

#: Files in which every byte is intended, such as inputs that once broke a reader.
AS_THEY_ARE = ("tests/fuzz/", "tests/cases/", "tests/golden/")
#: Files are for people to read; larger data are not kept in the repository.
LARGEST = 500_000
#: Conflict markers that `git merge` leaves.
CONFLICT = ("<" * 7 + " ", ">" * 7 + " ")


def faults(path: Path) -> Iterator[str]:
    """Yield a line for each fault of a text file."""
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
            yield f"{path}, line {number}: trailing blanks"
        if line.startswith(CONFLICT):
            yield f"{path}, line {number}: a conflict marker of a merge"
    if "\r" in text:
        yield f"{path}: carriage returns"


if __name__ == "__main__":
    problems = [fault for name in sys.argv[1:] for fault in faults(Path(name))]
    print("\n".join(problems))
    sys.exit(bool(problems))
