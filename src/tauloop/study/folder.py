"""The folder of a study: a manifest, and Parquet files for ranges of samples.

Only this folder records which samples are done. A file is written completely or not at all. Its
name and its metadata contain the range of samples; the metadata also identify the study. Therefore
a killed process loses only the results in its memory, and no sample is counted twice or for another
study.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError, Problems
from tauloop.common.files import exclusive_lock, write_file, write_text
from tauloop.common.records import dataclass
from tauloop.common.result import write_json
from tauloop.study.calculations import LOG, ComputedSamples
from tauloop.study.file import Study
from tauloop.study.variations import inputs_of

#: Name of the manifest.
MANIFEST = "study.json"
#: Folder of the Parquet files.
PARTS_FOLDER = "parts"
#: Folder of complete results.
RESULTS_FOLDER = "whole"
_PART_NAME = re.compile(r"samples-(\d{10})-(\d{10})\.parquet", re.ASCII)
#: Column of the sample numbers.
SAMPLE = "sample"
#: Column of the problems of the samples.
PROBLEM = "problem"
#: Format of a folder.
_FOLDER_FORMAT = "tauloop-study-folder/2"
#: Metadata key of a Parquet file for its study and range of samples.
_CONTENT_KEY = b"tauloop-study"
#: Metadata key of a Parquet file for the sizes and modification times of its logs.
_LOGS_KEY = b"tauloop-logs"
#: Maximum number of different problems that are counted separately.
MAX_DISTINCT_PROBLEMS = 100
#: Name under which all other problems are counted.
OTHER_PROBLEMS = "other problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """A Parquet file of samples first to last - 1."""

    first: int
    last: int
    path: Path


class StudyFolder:
    """The stored results of a study.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | Path) -> None:
        """Store the path; nothing is read or written yet.

        Raises:
            EngineError: pyarrow is not installed.
        """
        if find_spec("pyarrow") is None:
            what = "Parquet files need pyarrow, which is not installed"
            raise EngineError.of("study", what, "pip install 'tauloop[parquet]'")
        self.path = Path(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """Content and hash of the study, and versions of its software; empty without a manifest.

        Raises:
            InputError: the manifest is damaged.
        """
        try:
            content = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            if content["format"] != _FOLDER_FORMAT or not isinstance(content["versions"], dict):
                raise ValueError("it has another format")
            return {**content, "study": str(content["study"])}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            what = f"is not a manifest of a study: {type(error).__name__} {error}"
            raise InputError.of(str(self.path / MANIFEST), what, "name another folder") from None

    def begin(self, study: Study, versions: Mapping[str, str], *, resume: bool) -> None:
        """Create the manifest, or check that it belongs to this study.

        Raises:
            InputError: the folder belongs to another study or another version, or it belongs to
                this study but `resume` is False.
        """
        manifest = self.manifest
        where = str(self.path)
        if not manifest:
            if self.parts():
                what = f"contains study results but no {MANIFEST}, so the study they belong to is unknown"
                raise InputError.of(where, what, "restore this file, or name another folder")
            manifest = {
                "format": _FOLDER_FORMAT,
                "study": study.digest,
                "samples": study.count,
                "versions": dict(versions),
            }
            write_json(self.path / MANIFEST, manifest | {"content": json.loads(study.content)})
            return
        if not resume:
            raise InputError.of(
                where,
                "already contains a study",
                "continue it with --resume, or name another folder",
            )
        problems = Problems()
        if manifest["study"] != study.digest:
            what = f"contains another study, {manifest['study']}; this one is {study.digest}"
            problems.add(where, what, "name another folder, or restore the study file")
        for name, version in versions.items():
            stored_version = manifest["versions"].get(name)
            if stored_version != version:
                what = f"was started with {name} {stored_version}, but this is {version}: results may differ"
                problems.add(where, what, "install the earlier version, or use another folder")
        InputError.raise_if_any(problems)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other processes; it is created if it does not exist.

        Raises:
            InputError: another process uses it, or it cannot be created.
        """
        _create_folder(self.path / PARTS_FOLDER)
        with exclusive_lock(self.path):
            yield

    def parts(self) -> tuple[StudyPart, ...]:
        """Return all parts in order of samples.

        Raises:
            InputError: two parts contain the same sample, or the folder cannot be read.
        """
        try:
            names = os.listdir(self.path / PARTS_FOLDER)
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            raise InputError.of(
                str(self.path / PARTS_FOLDER), what, "restore it, or resume the study"
            ) from None
        # Numbers have ten digits, so that the names are sorted by first, then by last sample.
        matches = filter(None, map(_PART_NAME.fullmatch, sorted(names)))
        parts = [
            StudyPart(first=int(m[1]), last=int(m[2]), path=self.path / PARTS_FOLDER / m[0])
            for m in matches
        ]
        for previous, part in pairwise(parts):
            if part.first < previous.last:
                what = f"contains samples that are also in {previous.path.name}"
                remedy = "remove one of the two files: their results are equal"
                raise InputError.of(str(part.path), what, remedy)
        return tuple(parts)

    def delete_outdated_parts(self, study: Study) -> None:
        """Delete parts whose log files changed, appeared or disappeared after they were written."""
        import pyarrow
        import pyarrow.parquet

        if LOG not in {item.name for item in study.variations}:
            return
        for part in self.parts():
            inputs = inputs_of(study.variations, study.seed, part.first, part.last)
            # A damaged part is reported when its columns are read.
            with suppress(OSError, pyarrow.ArrowException):
                metadata = pyarrow.parquet.read_schema(part.path).metadata or {}
                if metadata.get(_LOGS_KEY) != _log_states(inputs):
                    part.path.unlink()

    def missing(self, count: int) -> list[tuple[int, int]]:
        """Return the ranges (first, end) of samples without a part."""
        ranges = [(0, 0), *((part.first, part.last) for part in self.parts()), (count, count)]
        gaps = [(previous[1], following[0]) for previous, following in pairwise(ranges)]
        return [(first, end) for first, end in gaps if first < end]

    def write(self, first: int, inputs: Mapping[str, np.ndarray], outcome: ComputedSamples) -> Path:
        """Write a part with sample numbers, inputs, results and problems.

        Returns:
            Path of the part.

        Raises:
            InputError: the file cannot be written.
        """
        import pyarrow
        import pyarrow.parquet

        n = len(outcome.problems)
        columns: dict[str, Any] = {SAMPLE: np.arange(first, first + n)}
        columns |= {f"input.{name}": _column_values(values) for name, values in inputs.items()}
        columns |= {f"output.{name}": values for name, values in outcome.values.items()}
        columns[PROBLEM] = pyarrow.array(
            outcome.problems, type=pyarrow.string()
        ).dictionary_encode()
        for k, text in outcome.whole.items():
            _create_folder(self.path / RESULTS_FOLDER)
            write_text(self.path / RESULTS_FOLDER / f"sample-{first + k:010d}.json", text + "\n")
        path = self.path / PARTS_FOLDER / f"samples-{first:010d}-{first + n:010d}.parquet"
        content = _content(self.manifest["study"], first, first + n)
        metadata = {_CONTENT_KEY: content, _LOGS_KEY: _log_states(inputs)}
        table = pyarrow.table(columns, metadata=metadata)
        return write_file(
            path, lambda new: pyarrow.parquet.write_table(table, new, write_page_checksum=True)
        )

    def column(self, name: str) -> np.ndarray:
        """Return a column of all stored samples, in the order of samples.

        Raises:
            InputError: a part is damaged.
        """
        pieces = [values.to_numpy(zero_copy_only=False) for values in self._pieces(name)]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def problems(self) -> tuple[dict[str, int], np.ndarray]:
        """Return the number of samples by problem, and a mask (N,) of samples without a problem.

        Only the first `MAX_DISTINCT_PROBLEMS` problems are distinguished.

        Raises:
            InputError: a part is damaged.
        """
        counts = Counter[str]()
        successes = [np.zeros(0, dtype=bool)]
        for values in self._pieces(PROBLEM):
            texts = values.to_pylist()
            successes.append(np.array([not text for text in texts]))
            for text in filter(None, texts):
                is_distinct = text in counts or len(counts) < MAX_DISTINCT_PROBLEMS
                counts[text if is_distinct else OTHER_PROBLEMS] += 1
        return dict(counts), np.concatenate(successes)

    def whole(self, number: int) -> Any:
        """Return the complete result of a sample as plain data.

        Raises:
            InputError: the result was not stored, or is damaged.
        """
        path = self.path / RESULTS_FOLDER / f"sample-{number:010d}.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = "remove the part that contains this sample and resume the study"
            raise InputError.of(str(path), f"cannot be read: {error}", remedy) from None

    def _pieces(self, name: str) -> Iterator[Any]:
        """Yield a column of every part as a pyarrow array."""
        import pyarrow
        import pyarrow.parquet

        study = self.manifest.get("study", "")
        for part in self.parts():
            try:
                with pyarrow.parquet.ParquetFile(
                    part.path, page_checksum_verification=True
                ) as file:
                    content = (file.schema_arrow.metadata or {}).get(_CONTENT_KEY)
                    values = file.read([name], use_threads=False)[name].combine_chunks()
            except (OSError, KeyError, pyarrow.ArrowException) as error:
                raise InputError.of(
                    str(part.path), f"is damaged: {error}", "remove it and resume the study"
                ) from None
            is_of_study = content == _content(study, part.first, part.last)
            if not is_of_study or len(values) != part.last - part.first:
                what = "does not match its file name, or belongs to another study"
                raise InputError.of(str(part.path), what, "remove it and resume the study")
            yield values


def _content(study: str, first: int, last: int) -> bytes:
    """Return the metadata that identify the study and the samples of a part."""
    return f"{study} {first} {last}".encode()


def _log_states(inputs: Mapping[str, np.ndarray]) -> bytes:
    """Return sizes and modification times of the logs of samples as JSON; null for missing logs."""
    states = [os.stat(log) if os.path.exists(log) else None for log in inputs.get(LOG, ())]
    return json.dumps([state and (state.st_size, state.st_mtime_ns) for state in states]).encode()


def _create_folder(folder: Path) -> None:
    """Create a folder unless it exists.

    Raises:
        InputError: the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError.of(
            str(folder), f"cannot be created: {error}", "name another folder"
        ) from None


def _column_values(values: np.ndarray) -> Any:
    """Return values for a Parquet column; objects are converted to text."""
    if values.dtype != object:
        return values
    return [str(value) for value in values]
