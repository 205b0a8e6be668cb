"""The folder of a study: a manifest and Parquet parts, each a range of samples; nothing else knows what is done.

A part is there whole or not at all, under a name that says which samples it holds; inside it says
so too, and of which study they are. So whoever was killed in the middle has lost what was in memory
and no more, and no sample counts twice or for another.
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
from tauloop.common.files import held_alone, write_file, write_text
from tauloop.common.records import dataclass
from tauloop.common.result import write_json
from tauloop.study.calculations import LOG, ComputedSamples
from tauloop.study.file import Study
from tauloop.study.variations import inputs_of

MANIFEST, PARTS, WHOLE = "study.json", "parts", "whole"
_PART = re.compile(r"samples-(\d{10})-(\d{10})\.parquet", re.ASCII)
#: Column of the samples' numbers, and of what is wrong with them.
SAMPLE, PROBLEM = "sample", "problem"
#: Format of a folder, and the keys under which a part says whose samples it holds, and from which
#: logs.
_FORMAT, _HOLDS, _LOGS = "tauloop-study-folder/2", b"tauloop-study", b"tauloop-logs"
#: Problems that are told apart, and what the others are called together.
DISTINCT, OTHERS = 100, "other problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """Samples first to last - 1 in a file."""

    first: int
    last: int
    path: Path


class StudyFolder:
    """What is there of a study.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | Path) -> None:
        """Name it; nothing is read or written yet.

        Raises:
            EngineError: pyarrow is missing.
        """
        if find_spec("pyarrow") is None:
            what = "Parquet parts need pyarrow, which is missing"
            raise EngineError.of("study", what, "pip install tauloop[parquet]")
        self.path = Path(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """What study this is: its content and hash, who computes it; {} where nothing lies here.

        Raises:
            InputError: the manifest is damaged.
        """
        try:
            content = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT or not isinstance(content["versions"], dict):
                raise ValueError("it has another format")
            return {**content, "study": str(content["study"])}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            what = f"is no manifest of a study: {type(error).__name__} {error}"
            raise InputError.of(str(self.path / MANIFEST), what, "name another folder") from None

    def begin(self, study: Study, versions: Mapping[str, str], *, resume: bool) -> None:
        """Make the folder a study's, or see that it is.

        Raises:
            InputError: another study lies here, or this one of another version; or one that is not
                to be resumed.
        """
        manifest, where = self.manifest, str(self.path)
        if not manifest:
            if self.parts():
                what = f"holds parts of a study, and no {MANIFEST} says of which"
                raise InputError.of(where, what, "put it back, or name another folder")
            manifest = {
                "format": _FORMAT,
                "study": study.digest,
                "samples": study.count,
                "versions": dict(versions),
            }
            write_json(self.path / MANIFEST, manifest | {"content": json.loads(study.content)})
            return
        if not resume:
            raise InputError.of(
                where,
                "a study lies here already",
                "go on with it by --resume, or name another folder",
            )
        problems = Problems()
        if manifest["study"] != study.digest:
            what = f"another study lies here: {manifest['study']}, this one is {study.digest}"
            problems.add(where, what, "name another folder, or the file as it was")
        for name, version in versions.items():
            if (before := manifest["versions"].get(name)) != version:
                what = f"was begun with {name} {before}, this is {version}: numbers may differ"
                problems.add(where, what, "install the former version, or begin in another folder")
        InputError.raise_if_any(problems)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Work in it, which is made where it is not there, while no other process does.

        Raises:
            InputError: another process does, or it cannot be made.
        """
        _make(self.path / PARTS)
        with held_alone(self.path):
            yield

    def parts(self) -> tuple[StudyPart, ...]:
        """All parts in the order of samples.

        Raises:
            InputError: two of them hold the same sample, or the folder cannot be read.
        """
        try:
            names = os.listdir(self.path / PARTS)
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            raise InputError.of(
                str(self.path / PARTS), what, "put it back, or resume the study"
            ) from None
        # of ten digits each: by first, then last
        matches = filter(None, map(_PART.fullmatch, sorted(names)))
        parts = [
            StudyPart(first=int(m[1]), last=int(m[2]), path=self.path / PARTS / m[0])
            for m in matches
        ]
        for before, after in pairwise(parts):
            if after.first < before.last:
                what = f"holds samples that {before.path.name} holds too"
                raise InputError.of(
                    str(after.path), what, "remove one of both files: they hold the same numbers"
                )
        return tuple(parts)

    def forget_changed(self, study: Study) -> None:
        """Remove parts of logs that have changed, come or gone since they were computed."""
        import pyarrow
        import pyarrow.parquet

        for part in self.parts() if LOG in {item.name for item in study.variations} else ():
            inputs = inputs_of(study.variations, study.seed, part.first, part.last)
            # of a damaged part, whose reader will say so
            with suppress(OSError, pyarrow.ArrowException):
                if (pyarrow.parquet.read_schema(part.path).metadata or {}).get(_LOGS) != _stamps(
                    inputs
                ):
                    part.path.unlink()

    def missing(self, count: int) -> list[tuple[int, int]]:
        """Ranges of samples without a part."""
        ends = [(0, 0), *((part.first, part.last) for part in self.parts()), (count, count)]
        return [(before[1], after[0]) for before, after in pairwise(ends) if before[1] < after[0]]

    def write(self, first: int, inputs: Mapping[str, np.ndarray], outcome: ComputedSamples) -> Path:
        """Write a part: numbers of samples, what varied, what was computed, what was wrong.

        Raises:
            InputError: it cannot be written.
        """
        import pyarrow
        import pyarrow.parquet

        n = len(outcome.problems)
        columns: dict[str, Any] = {SAMPLE: np.arange(first, first + n)}
        columns |= {f"input.{name}": _plain(values) for name, values in inputs.items()}
        columns |= {f"output.{name}": values for name, values in outcome.values.items()}
        columns[PROBLEM] = pyarrow.array(
            outcome.problems, type=pyarrow.string()
        ).dictionary_encode()
        for k, text in outcome.whole.items():
            _make(self.path / WHOLE)
            write_text(self.path / WHOLE / f"sample-{first + k:010d}.json", text + "\n")
        path = self.path / PARTS / f"samples-{first:010d}-{first + n:010d}.parquet"
        holds = {_HOLDS: _holds(self.manifest["study"], first, first + n), _LOGS: _stamps(inputs)}
        table = pyarrow.table(columns, metadata=holds)
        return write_file(
            path, lambda new: pyarrow.parquet.write_table(table, new, write_page_checksum=True)
        )

    def column(self, name: str) -> np.ndarray:
        """A column of all samples that are there, in their order: 8 bytes a sample, whatever the study holds.

        Raises:
            InputError: a part is damaged.
        """
        pieces = [values.to_numpy(zero_copy_only=False) for values in self._pieces(name)]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def problems(self) -> tuple[dict[str, int], np.ndarray]:
        """How many samples have which problem, the first `DISTINCT` by name; and which have none (N,).

        Raises:
            InputError: a part is damaged.
        """
        counts, good = Counter[str](), [np.zeros(0, dtype=bool)]
        for values in self._pieces(PROBLEM):
            texts = values.to_pylist()
            good.append(np.array([not text for text in texts]))
            for text in filter(None, texts):
                counts[text if text in counts or len(counts) < DISTINCT else OTHERS] += 1
        return dict(counts), np.concatenate(good)

    def whole(self, number: int) -> Any:
        """The whole result of a sample that was kept so, as plain data.

        Raises:
            InputError: it is not there, or damaged.
        """
        path = self.path / WHOLE / f"sample-{number:010d}.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = "remove the part that holds this sample and resume the study"
            raise InputError.of(str(path), f"cannot be read: {error}", remedy) from None

    def _pieces(self, name: str) -> Iterator[Any]:
        """A column of every part, as pyarrow has it."""
        import pyarrow
        import pyarrow.parquet

        study = self.manifest.get("study", "")
        for part in self.parts():
            try:
                with pyarrow.parquet.ParquetFile(
                    part.path, page_checksum_verification=True
                ) as file:
                    holds = (file.schema_arrow.metadata or {}).get(_HOLDS)
                    values = file.read([name], use_threads=False)[name].combine_chunks()
            except (OSError, KeyError, pyarrow.ArrowException) as error:
                raise InputError.of(
                    str(part.path), f"is damaged: {error}", "remove it and resume the study"
                ) from None
            if (
                holds != _holds(study, part.first, part.last)
                or len(values) != part.last - part.first
            ):
                what = "holds other samples than its name says, or those of another study"
                raise InputError.of(str(part.path), what, "remove it and resume the study")
            yield values


def _holds(study: str, first: int, last: int) -> bytes:
    return f"{study} {first} {last}".encode()


def _stamps(inputs: Mapping[str, np.ndarray]) -> bytes:
    """Sizes and times of change of the logs of samples; nothing of those that are not there."""
    states = [os.stat(log) if os.path.exists(log) else None for log in inputs.get(LOG, ())]
    return json.dumps([state and (state.st_size, state.st_mtime_ns) for state in states]).encode()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError.of(
            str(folder), f"cannot be made: {error}", "name another folder"
        ) from None


def _plain(values: np.ndarray) -> Any:
    return values if values.dtype != object else [str(value) for value in values]
