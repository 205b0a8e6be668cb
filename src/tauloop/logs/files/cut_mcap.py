"""Repair of truncated MCAP files, for example after a power failure: recover the complete records.

An MCAP file is a sequence of records with lengths, and ends with a footer, which rosbags requires.
Every complete record is copied. From a truncated chunk, the complete records in the part that can
be decompressed are copied. This module runs in the separate reader process (see `reading_process`),
so it must not import Tauloop.

Source: MCAP Format Specification, version 0, Foxglove.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

#: Bytes at the start and the end of an MCAP file.
MAGIC = b"\x89MCAP0\r\n"
_HEADER = 0x01
_FOOTER = 0x02
_SCHEMA = 0x03
_CHANNEL = 0x04
_MESSAGE = 0x05
_CHUNK = 0x06
_DATA_END = 0x0F
#: Head of a record: kind and length of its content.
_HEAD = struct.Struct("<BQ")
#: Head of a chunk: times of the first and last message, unpacked size and checksum. The name of the
#: compression follows.
_CHUNK_HEAD = struct.Struct("<QQQI")
#: End of data and footer without checksums, for a file without an index.
_END = _HEAD.pack(_DATA_END, 4) + bytes(4) + _HEAD.pack(_FOOTER, 20) + bytes(20) + MAGIC


@contextmanager
def readable(path: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the path of a readable bag, and a description of each truncated file.

    The path is the bag itself, or a repaired copy if files are truncated. The keys of a description
    are:

    - `file`: name of the file.
    - `at`: byte at which the data end.
    - `all`: whether all messages are preserved, because only the index is missing.
    - `messages`: number of preserved messages.
    - `last`: time of receipt of the last message, ns since 1970; None without messages.

    Raises:
        ValueError: a file is truncated within its first record.
    """
    bag = Path(path)
    files = sorted(bag.iterdir()) if bag.is_dir() else [bag]
    if not any(map(_is_truncated, files)):
        yield path, []
        return
    with tempfile.TemporaryDirectory(prefix="tauloop-") as folder:
        cuts = []
        for file in files:
            target = Path(folder) / file.name
            if _is_truncated(file):
                cuts.append(_rescued(file, target))
            else:
                target.symlink_to(file.resolve())
        yield folder if bag.is_dir() else str(Path(folder) / bag.name), cuts


def _is_truncated(file: Path) -> bool:
    """Return whether a file starts but does not end as an MCAP file."""
    if file.suffix.lower() != ".mcap" or not file.is_file():
        return False
    with file.open("rb") as data:
        begins = data.read(len(MAGIC)) == MAGIC
        size = data.seek(0, os.SEEK_END)
        data.seek(max(size - len(MAGIC), 0))
        return begins and (data.read() != MAGIC or size < len(MAGIC) + _HEAD.size)


def _rescued(file: Path, target: Path) -> dict[str, Any]:
    """Write a file's complete records and an end; return the description (see `readable`)."""
    from rosbags.rosbag2 import Reader

    with file.open("rb") as data, target.open("wb") as out:
        out.write(data.read(len(MAGIC)))
        at = _copy_whole_records(data, out)
        data.seek(at)
        kind, size = _head(data)
        if kind == _CHUNK:
            out.write(_records_of_truncated_chunk(data.read()))
        out.write(_END)
    with Reader(target) as bag:
        count = bag.message_count
        # the end time of rosbags is exclusive
        last = bag.end_time - 1 if count else None
    # the data after the last complete record may be the start of another record, or not
    file_size = file.stat().st_size
    next_end = at + _HEAD.size + size
    ends = file_size if next_end > file_size or kind == _DATA_END else at
    return {
        "file": file.name,
        "at": ends,
        "all": kind == _DATA_END,
        "messages": count,
        "last": last,
    }


def _copy_whole_records(data: BinaryIO, out: BinaryIO) -> int:
    """Copy complete records, and return the byte at which the next record starts."""
    for kind, size in _records(data):
        begins = data.tell() - _HEAD.size
        if kind == _CHUNK:
            content = data.read(size)
            if not _is_sound(content):
                return begins
            out.write(_HEAD.pack(kind, size) + content)
            continue
        out.write(_HEAD.pack(kind, size))
        remaining = size
        while remaining:
            part = data.read(min(remaining, 1 << 20))
            out.write(part)
            remaining -= len(part)
    return data.tell()


def _records(data: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield kind and length of each complete record; the caller may read its content.

    The iteration ends before an incomplete record, at zeros (reserved space), and at the end of the
    data.

    Raises:
        ValueError: the first record is incomplete or not a header.
    """
    file_size = os.fstat(data.fileno()).st_size
    kind, size = _head(data)
    if kind != _HEADER or data.tell() + _HEAD.size + size > file_size:
        raise ValueError("it is truncated within its first record and contains no messages")
    while kind not in (0, _DATA_END, _FOOTER) and data.tell() + _HEAD.size + size <= file_size:
        data.seek(_HEAD.size, os.SEEK_CUR)
        yield kind, size
        kind, size = _head(data)


def _head(data: BinaryIO) -> tuple[int, int]:
    """Return kind and length of the record at this position, which is kept; zeros at the end."""
    begins = data.tell()
    head = data.read(_HEAD.size)
    data.seek(begins)
    return _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)


def _is_sound(content: bytes) -> bool:
    """Return whether a chunk can be unpacked and consists of complete records."""
    packing, packed, size = _chunk_parts(content)
    unpacked = _unpacked(packing, packed, size)
    _, ends = _inner_records(unpacked)
    return len(unpacked) == size and ends == size


def _records_of_truncated_chunk(part: bytes) -> bytes:
    """Return the complete records in the available part of a chunk, which starts with its head."""
    _, length = _HEAD.unpack_from(part)
    content = part[_HEAD.size : _HEAD.size + length]
    records, _ = _inner_records(_unpacked(*_chunk_parts(content)))
    if len(content) == length:
        # the data may be followed by other bytes, which may be part of the last record
        records = records[:-1]
    return b"".join(records)


def _chunk_parts(content: bytes) -> tuple[str, bytes, int]:
    """Return a chunk's compression, packed records and unpacked size; empty if its head is cut."""
    try:
        _, _, size, _ = _CHUNK_HEAD.unpack_from(content)
        (length,) = struct.unpack_from("<I", content, _CHUNK_HEAD.size)
        begins = _CHUNK_HEAD.size + 4 + length
        return content[_CHUNK_HEAD.size + 4 : begins].decode(), content[begins + 8 :], size
    except (struct.error, UnicodeDecodeError):
        return "", b"", 0


def _inner_records(unpacked: bytes) -> tuple[list[bytes], int]:
    """Return the complete records of a chunk, and the end of the last complete one."""
    records, at = [], 0
    while at + _HEAD.size <= len(unpacked):
        kind, size = _HEAD.unpack_from(unpacked, at)
        ends = at + _HEAD.size + size
        if ends > len(unpacked) or kind == 0:
            break
        if kind in (_SCHEMA, _CHANNEL, _MESSAGE):
            records.append(unpacked[at:ends])
        at = ends
    return records, at


def _unpacked(packing: str, data: bytes, size: int) -> bytes:
    """Return the part of packed data that can be decompressed, at most `size` bytes."""
    if packing == "":
        return data[:size]
    parts: list[bytes] = []
    with suppress(Exception):  # damaged data; the part before is preserved
        if packing == "zstd":
            # the same module that rosbags uses
            module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
            parts.append(import_module(module).ZstdDecompressor().decompress(data, size))
        elif packing == "lz4":
            parts.append(import_module("lz4.frame").LZ4FrameDecompressor().decompress(data, size))
    return b"".join(parts)
