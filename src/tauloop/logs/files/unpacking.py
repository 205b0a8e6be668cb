"""Packed files, and how much they may become: a small file that fills the memory is no log."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from tauloop.common.errors import LogError

#: Files may become so many bytes at once, and beyond that so many times their size: measured logs
#: shrink to a tenth.
UNCHECKED_BYTES, MAX_UNPACKING_RATIO = 100_000_000, 200


def unpacked(path: Path) -> bytes:
    """Return what a gzip file holds, as long as that is no more than logs ever shrink."""
    most = int(most_unpacked(path))
    with gzip.open(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise _expands(path, len(data), "more than ")
    return data


def require_archive(path: Path) -> None:
    """Refuse a NumPy archive (npz) that would fill the memory with what its members are stated to hold.

    Raises:
        LogError: it would.
        zipfile.BadZipFile: it is not an archive.
    """
    with zipfile.ZipFile(path) as packed:
        require_ratio(path, sum(member.file_size for member in packed.infolist()))


def require_ratio(path: Path, size: int) -> None:
    """Refuse a file that would fill the memory with what it says it holds."""
    if size > most_unpacked(path):
        raise _expands(path, size)


def most_unpacked(path: Path) -> float:
    """Return the bytes that the content of a file, or of a folder of files, may take."""
    files = path.iterdir() if path.is_dir() else (path,)
    return max(UNCHECKED_BYTES, MAX_UNPACKING_RATIO * sum(file.stat().st_size for file in files))


def _expands(path: Path, size: int, more: str = "") -> LogError:
    packed = path.stat().st_size
    what = f"{packed / 1e6:.3g} MB become {more}{size / 1e6:.4g} MB, over {MAX_UNPACKING_RATIO} times as much: no measured log does"
    remedy = "export the log again, or unpack it yourself"
    return LogError.of("", what, remedy, file=str(path))
