"""Many logs of one machine: folded where their files are read, by as many workers as there are; samples never meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import IdentificationError, InputError, Problem, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, records
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.formats.library import mechanism_of
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.identification import (
    ClusteredErrors,
    FoldedIdentification,
    IdentificationOptions,
    LogTriangle,
    OrdinaryLeastSquares,
    ScoreDirections,
    ScoreSums,
    WeightedLeastSquares,
    arrays_of,
    fold_all,
    identify_folded,
    read_triangle,
    require_foldable,
    texts_of,
    triangle_of,
    with_autocorrelation,
    write_triangle,
)
from tauloop.identification.estimation.error_models import fading_correlation, residual_lags
from tauloop.identification.regression.folded_scores import NoiseFloor
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource
from tauloop.study.calculations import LOG
from tauloop.study.file import Study
from tauloop.study.folder import PROBLEM, StudyFolder
from tauloop.study.variations import VariedInput
from tauloop.study.workflow import StudyOptions, run_study

#: Scalars that are kept of each log beside its triangle.
KEPT = {"samples": "samples", "faults": "diagnostics/faults of the log/value"}
#: Values of diagnostics, and what to do about data that say too little.
BASE = "the base regressor (unit-norm columns)"
HELD_OUT = "RMSE on the held-out data to that on the training data"
MORE, EXCITE = (
    ": record a motion that excites more",
    "train on more excitation, or model what is missing",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions(Options):
    """How many logs are identified, and by whom.

    Attributes:
        identification: of every log; what needs the samples of all logs at once is refused.
        study: who folds them, and whether one goes on.
        add: triangle that was written before, whose logs are not read again: these are folded into
            it.

    Examples:
        >>> import tauloop as tl
        >>> tl.FoldOptions(study=tl.StudyOptions(workers=2)).add is None
        True
    """

    identification: IdentificationOptions = option(factory=IdentificationOptions)
    study: StudyOptions = option(factory=StudyOptions)
    add: Path | None = option(None, metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldedLogs(Result):
    """Base parameters of many logs.

    Attributes:
        machine: its name.
        logs: how many are in it, those of a triangle of before among them.
        samples: that were fitted.
        errors: what standard deviations assume of the errors.
        identification: values, deviations, residuals.
        triangle: of all logs, to be written and added to.
        refused: why logs are not in it, by their names.
        faults: logs that something is wrong with, and how much.
    """

    machine: str
    logs: int
    samples: int
    errors: str
    identification: FoldedIdentification = field(metadata=OMITTED)
    triangle: LogTriangle = field(metadata=OMITTED)
    refused: Mapping[str, str]
    faults: Mapping[str, int]

    def variables(self) -> Iterator[Variable]:
        """Base parameters with standard deviations, by `parameter`; residuals by `output`."""
        base, estimate = self.identification.base, self.identification.estimate
        figures = {"value": estimate.values, "deviation": estimate.standard_deviations}
        yield from rows("parameter", base.names, base.units, **figures)
        yield Variable(name="output", values=self.triangle.training.outputs, over=("output",))
        yield Variable(name="rmse", values=self.identification.training, over=("output",))
        if self.identification.held_out is not None:
            yield Variable(
                name="held_out_rmse", values=self.identification.held_out, over=("output",)
            )

    @property
    @in_json()
    def base_parameters(self) -> list[dict[str, Any]]:
        """Values and standard deviations of the base parameters."""
        base, estimate = self.identification.base, self.identification.estimate
        return records(
            name=base.names,
            unit=base.units,
            value=estimate.values,
            standard_deviation=estimate.standard_deviations,
        )

    @property
    @in_json()
    def outputs(self) -> list[dict[str, Any]]:
        """Residuals of every output."""
        fitted, held_out = self.identification.training, self.identification.held_out
        return records(
            output=self.triangle.training.outputs,
            rmse=fitted,
            held_out_rmse=[None] * len(fitted) if held_out is None else held_out,
        )

    def write_triangle(self, path: str | Path) -> Path:
        """Write the triangle of all logs, to which later ones are added (`FoldOptions.add`).

        Raises:
            InputError: it cannot be written.
        """
        return write_triangle(self.triangle, path)


@keywords(FoldOptions)
@solving(IdentificationError)
def fold_logs(
    machine: MachineSource,
    logs: Sequence[str | Path],
    folder: str | Path,
    options: FoldOptions | None = None,
    *,
    progress: Progress | None = None,
) -> FoldedLogs:
    """Identify base parameters from many logs, each folded into a small triangle by whichever worker reads it.

    Base parameters, deviations and errors on held-out samples are those of `identify` with all logs
    at once, to 1e-10. Deviations for errors of unknown correlation (the default) follow from the
    estimate, so that every log is read three times; for decimated or independent ones, or clustered
    by logs or blocks, once. What workers have made of a log lies in the folder, and is not made
    again when it is resumed.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: files, which workers must reach by these names.
        folder: where what was made of logs is kept.
        options: how, and by whom.
        progress: called with the number of readings that are done, and of all.

    Raises:
        InputError: options that need the samples of all logs at once, or to read those of a
            triangle again; the folder holds something else.
        IdentificationError: no log can be folded, or they do not support an identification.
        EngineError: as `run_study`.

    Source: Demmel, Grigori, Hoemmen and Langou 2012, Communication-optimal parallel and sequential
        QR and LU
    factorizations.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> machine = tl.load("four_bar")
        >>> time, ports = np.linspace(0.0, 4.0, 801), (["motor"], ["rad"], ["N m"])
        >>> sensors, rng = tl.logs.Sensors(resolution=[0.0], force_noise=[1e-3]), np.random.default_rng(1)
        >>> for day in (2.0, 2.2):
        ...     angle = np.pi * np.sin(day * time)[:, None]
        ...     speed, rate = np.pi * day * np.cos(day * time)[:, None], -(day**2) * angle
        ...     forces = tl.Model(machine).actuators.inverse_dynamics(angle, speed, rate).force
        ...     log = tl.logs.measure(time, angle, forces, *ports, sensors, rng)
        ...     _ = tl.logs.write_log(f"{day}.csv", log)
        >>> result = tl.fold_logs(machine, ["2.0.csv", "2.2.csv"], "folded")
        >>> result.logs, result.refused
        (2, {})
    """
    options, mechanism = options or FoldOptions(), mechanism_of(machine)
    how = options.identification
    require_foldable(how)
    if options.add is not None and how.errors == "autocorrelated":
        what = "deviations for errors of unknown correlation need all logs, and those of the triangle are not read"
        raise InputError.of(
            "errors", what, "take logs, blocks, decimated or independent, for the triangle too"
        )
    readings = 3 if how.errors == "autocorrelated" else 1
    paths = [str(Path(log).absolute()) for log in logs]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    InputError.raise_if_any(
        Problem("logs", f"{path} is named twice", "name each log once") for path in twice
    )
    folding = _Folding(mechanism, paths, Path(folder), options, readings, progress, {}, {})
    made, refused, faults = folding.read("fold", 0, {}), folding.refused, folding.faults
    before = [] if options.add is None else [read_triangle(options.add)]
    if len(refused) == len(logs):
        if not logs:
            raise IdentificationError.of("logs", "there are none", "name some")
        texts = (text if log in text else f"{log}: {text}" for log, text in refused.items())
        # their remedies are in them
        raise IdentificationError([Problem(where="", what=text) for text in texts])
    known = {
        mark: f"a log of {options.add}" for triangle in before for mark in triangle.marks.tolist()
    }
    lobes: list[float] = []
    triangle = fold_all([*before, *folding.once(_with_lobes(made, lobes), known)])
    estimator = OrdinaryLeastSquares() if how.estimator == "ols" else WeightedLeastSquares()
    clustered = (
        ClusteredErrors(by=str(how.errors).removesuffix("s"))
        if how.errors in ("logs", "blocks")
        else None
    )
    folded = identify_folded(triangle, estimator, errors=clustered)
    if readings == 3:
        folded = _with_scores(folding, folded, residual_lags(max(lobes)) if lobes else 0)
    return FoldedLogs(
        machine=mechanism.name,
        logs=triangle.logs,
        samples=triangle.training.samples,
        errors=str(how.errors),
        identification=folded,
        triangle=triangle,
        refused=refused,
        faults=faults,
        diagnostics=_diagnostics(folded, refused, faults),
        provenance=provenance(
            options={"identification": texts_of(how)},
            inputs={"logs": len(logs)},
            packages=("numpy", "scipy"),
        ),
    )


def _diagnostics(
    folded: FoldedIdentification, refused: Mapping[str, str], faults: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    ratio = None
    if folded.held_out is not None:
        ratio = float(np.max(folded.held_out / np.maximum(folded.training, np.finfo(float).tiny)))
    gap, condition = folded.base.gap, folded.base.condition
    rows_of = (
        (
            "gap at the rank (unit-norm columns)",
            gap,
            1e3,
            None,
            "the rank is not beyond doubt" + MORE,
        ),
        (
            f"condition number of {BASE}",
            condition,
            None,
            1e4,
            "some base parameters are hardly excited" + MORE,
        ),
        (
            f"largest ratio of {HELD_OUT}",
            ratio,
            None,
            3.0,
            f"the model does not carry over to new motions: {EXCITE}",
        ),
        ("logs refused", float(len(refused)), None, 0.0, "see why, and leave them out"),
        ("logs with faults", float(len(faults)), None, 0.0, "identify each by itself"),
    )
    return tuple(
        diagnostic(name, value, at_least=lower, at_most=upper, advice=advice)
        for name, value, lower, upper, advice in rows_of
    )


@dataclass(frozen=True, slots=True)
class _Folding:
    """Readings of all logs, each a study of its own, whose samples are logs."""

    machine: Mechanism
    logs: list[str]
    folder: Path
    options: FoldOptions
    readings: int
    progress: Progress | None
    refused: dict[str, str]
    faults: dict[str, int]

    def once(
        self, made: Iterator[dict[str, np.ndarray]], known: dict[int, str]
    ) -> Iterator[LogTriangle]:
        """Triangles of logs that are not known by their marks; the others are refused."""
        logs = [log for log in self.logs if log not in self.refused]
        for log, triangle in zip(logs, map(triangle_of, made), strict=True):
            if (first := known.setdefault(int(triangle.marks[0]), log)) == log:
                yield triangle
            else:
                self.refused[log] = f"has the samples of {first}, and each log counts once"

    def read(
        self, result: str, number: int, more: Mapping[str, Any]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Arrays of all logs that are not refused, one by one; why others are, and what is wrong with logs, is noted.

        Raises:
            IdentificationError: one that was read before cannot be read again.
        """
        count, folder = len(self.logs), self.folder / f"reading-{number + 1}"
        study = Study(
            machine=self.machine.name,
            machine_text=dumps(self.machine),
            variations=(VariedInput(name=LOG, kind="list", values=tuple(self.logs)),),
            result=result,
            options=texts_of(self.options.identification) | dict(more),
            keep=KEPT,
            whole=tuple(range(count)),
            limits={},
        )

        tick, readings = self.progress or (lambda *_: None), self.readings
        run_study(
            study,
            folder,
            self.options.study,
            progress=lambda n, all: tick(number * count + n, readings * all),
        )
        kept = StudyFolder(folder)
        problems, faults = kept.column(PROBLEM), kept.column("output.faults")
        samples = kept.column("sample").astype(int)
        refused = {
            self.logs[i]: str(text) for i, text in zip(samples, problems, strict=True) if text
        }
        refused |= {
            self.logs[i]: "it killed its workers" for i in set(range(count)) - set(samples.tolist())
        }
        lost = [
            Problem("", f"cannot be read again: {text}", file=log) for log, text in refused.items()
        ]
        IdentificationError.raise_if_any(p for p in lost if number and p.file not in self.refused)
        self.refused.update(refused)
        self.faults.update(
            {self.logs[i]: int(n) for i, n in zip(samples, faults, strict=True) if n > 0}
        )
        places = [i for i in range(count) if self.logs[i] not in self.refused]
        return (arrays_of(kept.whole(i)) for i in places)


def _with_lobes(
    made: Iterator[dict[str, np.ndarray]], lobes: list[float]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of logs, and note the lengths of their filters."""
    for arrays in made:
        if "lobe" in arrays:
            lobes.append(float(arrays["lobe"]))
        yield arrays


def _with_scores(
    folding: _Folding, folded: FoldedIdentification, lags: int
) -> FoldedIdentification:
    """Return the identification after the second and the third reading.

    Args:
        folding: of the logs.
        folded: of all logs.
        lags: of the correlation of the residuals; 0 where forces passed no filter of known length.
    """
    directions = ScoreDirections.of(folded)
    names = ("independent", "values", "weights", "sensitivity")
    flat = {name: np.ravel(getattr(directions, name)).tolist() for name in names}
    second = list(folding.read("fold-scores", 1, {"directions": flat, "lags": lags}))
    products = [arrays.pop("residuals") for arrays in second if "residuals" in arrays]
    each = (ScoreSums(samples=int(arrays.pop("samples")), **arrays) for arrays in second)
    sums = reduce(ScoreSums.__add__, each)
    asked: dict[str, Any] = {"directions": flat, "kernel": sums.kernel.tolist()}
    total = np.zeros(0)
    if products:
        shortest = min(map(len, products))
        total = np.sum([part[:shortest] for part in products], axis=0)
        asked["correlation"] = fading_correlation(total).tolist()
    third = list(folding.read("fold-scores", 2, asked))
    floor = None
    if products:
        floor = NoiseFloor(
            squares=total[0], spread=np.sum([arrays["noise"] for arrays in third], axis=0)
        )
    return with_autocorrelation(folded, sums, (arrays["spread"] for arrays in third), floor)
