"""Compressed files, and the limit of their unpacked size."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from tauloop.common.errors import LogError

#: Unpacked size that is always permitted, bytes.
UNCHECKED_BYTES = 100_000_000
#: Largest permitted ratio of a larger unpacked size to the file size. Measured logs are compressed
#: to about a tenth.
MAX_UNPACKING_RATIO = 200


def unpacked(path: Path) -> bytes:
    """Return the content of a gzip file.

    Raises:
        LogError: the content is implausibly large for a log.
    """
    most = int(most_unpacked(path))
    with gzip.open(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise _expands(path, len(data), "more than ")
    return data


def require_archive(path: Path) -> None:
    """Reject a NumPy archive (npz) if the declared sizes of its members would fill the memory.

    Raises:
        LogError: the declared sizes would fill the memory.
        zipfile.BadZipFile: the file is not an archive.
    """
    with zipfile.ZipFile(path) as packed:
        require_ratio(path, sum(member.file_size for member in packed.infolist()))


def require_ratio(path: Path, size: int) -> None:
    """Raise an error if the declared size of a file's content, bytes, would fill the memory.

    Raises:
        LogError: the size exceeds `most_unpacked`.
    """
    if size > most_unpacked(path):
        raise _expands(path, size)


def most_unpacked(path: Path) -> float:
    """Return the largest permitted unpacked size of a file or folder, bytes."""
    files = path.iterdir() if path.is_dir() else (path,)
    return max(UNCHECKED_BYTES, MAX_UNPACKING_RATIO * sum(file.stat().st_size for file in files))


def _expands(path: Path, size: int, more: str = "") -> LogError:
    packed = path.stat().st_size
    what = (
        f"{packed / 1e6:.3g} MB unpack to {more}{size / 1e6:.4g} MB, "
        f"over {MAX_UNPACKING_RATIO} times as much, which is implausible for a measured log"
    )
    remedy = "export the log again, or unpack it yourself"
    return LogError.of("", what, remedy, file=str(path))
