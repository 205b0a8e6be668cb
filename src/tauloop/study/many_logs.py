"""Identification from many logs of one machine, each folded into a small triangle by a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
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
from tauloop.identification.estimation.folded_timing import has_timing, mean_timing_terms
from tauloop.identification.estimation.timing_terms import TimingTerm, with_bias_covariance
from tauloop.identification.regression.folded_scores import NoiseFloor
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource
from tauloop.study.calculations import LOG
from tauloop.study.file import Study
from tauloop.study.folder import PROBLEM, StudyFolder
from tauloop.study.variations import VariedInput
from tauloop.study.workflow import StudyOptions, run_study

#: Scalars that are stored for each log in addition to its triangle.
STORED_SCALARS = {"samples": "samples", "faults": "diagnostics/faults of the log/value"}
#: Largest fraction of the logs whose delays and bending may be missing in the deviations.
MAX_LOGS_WITHOUT_TIMING = 0.5
#: Quantities of diagnostics, and advice.
BASE_REGRESSOR = "the base regressor (unit-norm columns)"
HELD_OUT_RATIO = "RMSE on the held-out data to that on the training data"
MORE_EXCITATION = "record a motion with more excitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions(Options):
    """Options of an identification from many logs.

    Attributes:
        identification: options for every log; those that need samples of all logs at once are
            rejected.
        study: workers, and whether to resume.
        add: condensed logs (.npz) of an earlier run, to which the new logs are added.

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
        machine: name of the machine.
        logs: number of logs used, including those of an added triangle.
        samples: number of fitted samples.
        errors: error model of the standard deviations.
        identification: values, deviations and residuals.
        triangle: triangle of all logs, to which logs can be added later.
        refused: reasons of logs that were not used, by name.
        faults: number of faults by log, for logs with faults.
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
        """Yield base parameters and deviations by `parameter`, and residuals by `output`."""
        base, estimate = self.identification.base, self.identification.estimate
        columns = {"value": estimate.values, "deviation": estimate.standard_deviations}
        yield from rows("parameter", base.names, base.units, **columns)
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
        """Write the triangle of all logs, to which `FoldOptions.add` adds further logs.

        Returns:
            The path.

        Raises:
            InputError: the file cannot be written.
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
    """Identify base parameters from many logs, each folded into a small triangle by a worker.

    Base parameters, deviations and errors on held-out samples equal those of `identify` with all
    logs at once to 1e-10. Deviations for errors of unknown correlation (the default) depend on the
    estimate, so that every log is read three times; for decimated or independent errors, or
    clusters by logs or blocks, once. The default deviations also contain the means of the delays
    and compliant transmissions in the logs' own fits, so that they are only close to those of
    `identify`. Results of each log are stored in the folder, and are not
    computed again after a resume.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: files, which must have the same names for all workers.
        folder: folder of the stored results of each log.
        options: options of the identification, and workers.
        progress: called with the number of logs read, and the total number of readings.

    Returns:
        The identification, the names of the logs, and the reasons of those that were not used
        (`refused`).

    Raises:
        InputError: options that need the samples of all logs at once, or to read those of a
            triangle again; a folder of another study.
        IdentificationError: no log can be folded, or the logs do not support an identification.
        EngineError: see `run_study`.

    Source: Demmel, Grigori, Hoemmen and Langou 2012, Communication-optimal parallel and sequential
        QR and LU factorizations.

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
    settings = options.identification
    require_foldable(settings)
    if options.add is not None and settings.errors == "autocorrelated":
        problem = (
            "deviations for errors of unknown correlation need the logs of the added triangle again"
        )
        remedy = "use logs, blocks, decimated or independent, also for the triangle"
        raise InputError.of("errors", problem, remedy)
    readings = 3 if settings.errors == "autocorrelated" else 1
    paths = [str(Path(log).absolute()) for log in logs]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    InputError.raise_if_any(
        Problem("logs", f"{path} is given twice", "give each log once") for path in twice
    )
    folding = _Folding(mechanism, paths, Path(folder), options, readings, progress, {}, {})
    arrays, refused, faults = folding.read("fold", 0, {}), folding.refused, folding.faults
    added = [] if options.add is None else [read_triangle(options.add)]
    if len(refused) == len(logs):
        if not logs:
            raise IdentificationError.of("logs", "none are given", "give at least one")
        texts = (text if log in text else f"{log}: {text}" for log, text in refused.items())
        # the texts contain their remedies
        raise IdentificationError([Problem(where="", what=text) for text in texts])
    known: dict[int, str] = {}
    for triangle in added:
        known |= dict.fromkeys(triangle.marks.tolist(), f"a log of {options.add}")
    lobes: list[float] = []
    timing: dict[int, dict[str, np.ndarray]] = {}
    read = _with_lobes(_with_timing(arrays, timing), lobes)
    triangle = fold_all([*added, *folding.distinct(read, known)])
    estimator = OrdinaryLeastSquares() if settings.estimator == "ols" else WeightedLeastSquares()
    clustered = None
    if settings.errors in ("logs", "blocks"):
        clustered = ClusteredErrors(by=str(settings.errors).removesuffix("s"))
    folded = identify_folded(triangle, estimator, errors=clustered)
    if readings == 3:
        folded = _with_scores(folding, folded, residual_lags(max(lobes)) if lobes else 0)
    terms: tuple[TimingTerm, ...] = ()
    timing_diagnostics: tuple[Diagnostic, ...] = ()
    if readings == 3:
        names, of_logs = folded.base.names, list(timing.values())
        normals = [_normal_matrix(entry["training_triangles"], folded) for entry in of_logs]
        terms = mean_timing_terms(of_logs, normals, names, folded.estimate)
        folded = replace(folded, estimate=with_bias_covariance(folded.estimate, terms))
        without = sum(not has_timing(entry, names) for entry in of_logs)
        timing_diagnostics = _timing_diagnostics(terms, without / len(of_logs))
    return FoldedLogs(
        machine=mechanism.name,
        logs=triangle.logs,
        samples=triangle.training.samples,
        errors=str(settings.errors),
        identification=folded,
        triangle=triangle,
        refused=refused,
        faults=faults,
        diagnostics=(*_diagnostics(folded, refused, faults), *timing_diagnostics),
        provenance=provenance(
            options={"identification": texts_of(settings)},
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
    return (
        diagnostic(
            "gap at the rank (unit-norm columns)",
            folded.base.gap,
            at_least=1e3,
            advice=f"the rank is uncertain: {MORE_EXCITATION}",
        ),
        diagnostic(
            f"condition number of {BASE_REGRESSOR}",
            folded.base.condition,
            at_most=1e4,
            advice=f"some base parameters are hardly excited: {MORE_EXCITATION}",
        ),
        diagnostic(
            f"largest ratio of {HELD_OUT_RATIO}",
            ratio,
            at_most=3.0,
            advice="the model does not generalize to other motions: train with more excitation, or "
            "add missing effects to the model",
        ),
        diagnostic(
            "logs refused",
            float(len(refused)),
            at_most=0.0,
            advice="see `refused` of the result for the reasons, and remove these logs",
        ),
        diagnostic(
            "logs with faults",
            float(len(faults)),
            at_most=0.0,
            advice="identify each of them separately",
        ),
    )


def _timing_diagnostics(
    terms: Sequence[TimingTerm], without_share: float
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of delays and compliant transmissions in all logs together.

    Args:
        terms: their means over the logs.
        without_share: fraction of the logs whose own fit does not determine them.
    """
    shown = [f"{term.kind} of {', '.join(term.outputs)}" for term in terms if term.is_shown]
    return (
        diagnostic(
            "delays and compliant transmissions that are significant over all logs",
            float(len(shown)),
            at_most=0.0,
            advice=f"{'; '.join(shown)}: align force and motion in time, or excite lower frequencies",
        ),
        diagnostic(
            "fraction of logs whose delays and bending the standard deviations do not cover",
            without_share,
            at_most=MAX_LOGS_WITHOUT_TIMING,
            advice="deviations may be too small: record logs that determine the parameters alone",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Folding:
    """Repeated readings of all logs; each reading is a study whose samples are the logs."""

    machine: Mechanism
    logs: list[str]
    folder: Path
    options: FoldOptions
    readings: int
    progress: Progress | None
    refused: dict[str, str]
    faults: dict[str, int]

    def distinct(
        self, logs_arrays: Iterator[dict[str, np.ndarray]], known: dict[int, str]
    ) -> Iterator[LogTriangle]:
        """Yield the triangles of logs with new samples, and reject repeated ones."""
        logs = [log for log in self.logs if log not in self.refused]
        for log, triangle in zip(logs, map(triangle_of, logs_arrays), strict=True):
            if (first := known.setdefault(int(triangle.marks[0]), log)) == log:
                yield triangle
            else:
                self.refused[log] = f"has the same samples as {first}; each log is used once"

    def read(
        self, result: str, number: int, more: Mapping[str, Any]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Return the arrays of all logs that are not rejected; note rejected and faulty logs.

        Raises:
            IdentificationError: a log that was read before cannot be read again.
        """
        count, folder = len(self.logs), self.folder / f"reading-{number + 1}"
        study = Study(
            machine=self.machine.name,
            machine_text=dumps(self.machine),
            variations=(VariedInput(name=LOG, kind="list", values=tuple(self.logs)),),
            result=result,
            options=texts_of(self.options.identification) | dict(more),
            keep=STORED_SCALARS,
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
        stored = StudyFolder(folder)
        problems, faults = stored.column(PROBLEM), stored.column("output.faults")
        samples = stored.column("sample").astype(int)
        refused = {}
        for i, text in zip(samples, problems, strict=True):
            if text:
                refused[self.logs[i]] = str(text)
        for i in set(range(count)) - set(samples.tolist()):
            refused[self.logs[i]] = "it killed its workers"
        lost = [
            Problem("", f"cannot be read again: {text}", file=log) for log, text in refused.items()
        ]
        IdentificationError.raise_if_any(p for p in lost if number and p.file not in self.refused)
        self.refused.update(refused)
        for i, fault_count in zip(samples, faults, strict=True):
            if fault_count > 0:
                self.faults[self.logs[i]] = int(fault_count)
        indices = [i for i in range(count) if self.logs[i] not in self.refused]
        return (arrays_of(stored.whole(i)) for i in indices)


def _with_timing(
    logs_arrays: Iterator[dict[str, np.ndarray]], timing: dict[int, dict[str, np.ndarray]]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of logs, and note those of their timing by the fingerprint of the log."""
    for arrays in logs_arrays:
        timing[int(arrays["marks"][0])] = {
            name: values
            for name, values in arrays.items()
            if name.startswith("timing") or name == "training_triangles"
        }
        yield arrays


def _normal_matrix(triangles: np.ndarray, folded: FoldedIdentification) -> np.ndarray:
    """Return the normal matrix (r, r) of a log for the base parameters and weights of all logs.

    Args:
        triangles: (n_measured, n + 1, n + 1) of the fitted samples of the log.
        folded: identification of all logs.
    """
    base = triangles[:, :, list(folded.base.independent)] * folded.estimate.weights[:, None, None]
    return np.asarray(np.einsum("kmi,kmj->ij", base, base))


def _with_lobes(
    logs_arrays: Iterator[dict[str, np.ndarray]], lobes: list[float]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of logs, and note the lengths of their filters."""
    for arrays in logs_arrays:
        if "lobe" in arrays:
            lobes.append(float(arrays["lobe"]))
        yield arrays


def _with_scores(
    folding: _Folding, folded: FoldedIdentification, lags: int
) -> FoldedIdentification:
    """Return the identification after the second and the third reading.

    Args:
        folding: readings of the logs.
        folded: identification from all logs.
        lags: number of lags in the correlation of residuals; 0 without filters of known length.
    """
    directions = ScoreDirections.of(folded)
    names = ("independent", "values", "weights", "sensitivity")
    flat = {name: np.ravel(getattr(directions, name)).tolist() for name in names}
    second = list(folding.read("fold-scores", 1, {"directions": flat, "lags": lags}))
    products = [arrays.pop("residuals") for arrays in second if "residuals" in arrays]
    log_sums = (ScoreSums(samples=int(arrays.pop("samples")), **arrays) for arrays in second)
    sums = reduce(ScoreSums.__add__, log_sums)
    settings: dict[str, Any] = {"directions": flat, "kernel": sums.kernel.tolist()}
    total = np.zeros(0)
    if products:
        shortest = min(map(len, products))
        total = np.sum([part[:shortest] for part in products], axis=0)
        settings["correlation"] = fading_correlation(total).tolist()
    third = list(folding.read("fold-scores", 2, settings))
    floor = None
    if products:
        floor = NoiseFloor(
            squares=total[0], spread=np.sum([arrays["noise"] for arrays in third], axis=0)
        )
    return with_autocorrelation(folded, sums, (arrays["spread"] for arrays in third), floor)
