"""The folder of a study: a manifest and Parquet parts, each a range of samples; nothing else knows what is done.

A part is there whole or not at all, under a name that says which samples it holds. So whoever was killed in the middle
has lost what was in memory and no more, and no sample counts twice.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.errors import EngineError, InputError, Problems
from tauloop.files import held_alone, write_file, write_text
from tauloop.records import dataclass
from tauloop.result import write_json
from tauloop.study.calculations import ComputedSamples
from tauloop.study.file import Study

MANIFEST, PARTS, WHOLE = "study.json", "parts", "whole"
_PART = re.compile(r"samples-(\d{10})-(\d{10})\.parquet", re.ASCII)
#: Column of the samples' numbers, and of what is wrong with them.
SAMPLE, PROBLEM = "sample", "problem"


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
            return dict(json.loads((self.path / MANIFEST).read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError) as error:
            what = f"is no manifest of a study: {error}"
            raise InputError.of(str(self.path / MANIFEST), what, "name another folder") from None

    def begin(self, study: Study, versions: Mapping[str, str], *, resume: bool) -> None:
        """Make the folder a study's, or see that it is.

        Raises:
            InputError: another study lies here, or this one of another version; or one that is not to be resumed.
        """
        manifest, where = self.manifest, str(self.path)
        if not manifest:
            (self.path / PARTS).mkdir(parents=True, exist_ok=True)
            content: dict[str, Any] = {
                "format": "tauloop-study-folder/1",
                "study": study.digest,
                "samples": study.count,
            }
            write_json(
                self.path / MANIFEST, content | {"versions": dict(versions), "content": json.loads(study.content)}
            )
            return
        if not resume:
            raise InputError.of(where, "a study lies here already", "go on with it by --resume, or name another folder")
        problems = Problems()
        if manifest.get("study") != study.digest:
            what = f"another study lies here: {manifest.get('study')}, this one is {study.digest}"
            problems.add(where, what, "name another folder, or the file as it was")
        for name, version in versions.items():
            if (before := manifest.get("versions", {}).get(name)) != version:
                what = f"was begun with {name} {before}, this is {version}: numbers may differ"
                problems.add(where, what, "install the former version, or begin in another folder")
        InputError.raise_if_any(problems)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Work in it while no other process does.

        Raises:
            InputError: another process does.
        """
        with held_alone(self.path):
            yield

    def parts(self) -> tuple[StudyPart, ...]:
        """All parts in the order of samples.

        Raises:
            InputError: two of them hold the same sample.
        """
        parts = []
        for entry in os.scandir(self.path / PARTS):
            if match := _PART.fullmatch(entry.name):
                parts.append(StudyPart(first=int(match[1]), last=int(match[2]), path=Path(entry.path)))
        parts.sort(key=lambda part: (part.first, part.last))
        for before, after in pairwise(parts):
            if after.first < before.last:
                what = f"holds samples that {before.path.name} holds too"
                raise InputError.of(str(after.path), what, "remove one of both files: they hold the same numbers")
        return tuple(parts)

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
        columns[PROBLEM] = pyarrow.array(outcome.problems, type=pyarrow.string()).dictionary_encode()
        for k, text in outcome.whole.items():
            (self.path / WHOLE).mkdir(exist_ok=True)
            write_text(self.path / WHOLE / f"sample-{first + k:010d}.json", text + "\n")
        path = self.path / PARTS / f"samples-{first:010d}-{first + n:010d}.parquet"
        table = pyarrow.table(columns)
        return write_file(path, lambda temporary: pyarrow.parquet.write_table(table, temporary))

    def column(self, name: str) -> np.ndarray:
        """A column of all samples that are there, in their order: 8 bytes a sample, whatever the study holds.

        Raises:
            InputError: a part is damaged.
        """
        pieces = [self._read(part, [name])[name] for part in self.parts()]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def whole(self, number: int) -> str:
        """The whole result of a sample that was kept so, as JSON.

        Raises:
            InputError: it is not there.
        """
        path = self.path / WHOLE / f"sample-{number:010d}.json"
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            what = f"the whole result of sample {number} cannot be read: {error}"
            raise InputError.of(str(path), what, "remove the part that holds it and resume the study") from None

    def _read(self, part: StudyPart, columns: Sequence[str]) -> dict[str, np.ndarray]:
        import pyarrow
        import pyarrow.parquet

        try:
            table = pyarrow.parquet.read_table(part.path, columns=list(columns), use_threads=False)
        except (OSError, pyarrow.ArrowException) as error:
            raise InputError.of(str(part.path), f"is damaged: {error}", "remove it and resume the study") from None
        if table.num_rows != part.last - part.first:
            raise InputError.of(str(part.path), f"has {table.num_rows} samples", "remove it and resume the study")
        return {name: table[name].to_numpy(zero_copy_only=False) for name in columns}


def _plain(values: np.ndarray) -> Any:
    return values if values.dtype != object else [str(value) for value in values]
