"""Identification from many logs of one machine, each condensed to a QR factor by a worker."""

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

#: Scalars that are stored for each log in addition to its QR factor.
STORED_SCALARS = {"samples": "samples", "faults": "diagnostics/faults of the log/value"}
#: Largest accepted fraction of logs whose delays and bending the standard deviations do not cover.
MAX_LOGS_WITHOUT_TIMING = 0.5
#: Parts of the names and the advice of diagnostics.
BASE_REGRESSOR = "the base regressor (unit-norm columns)"
HELD_OUT_RATIO = "RMSE on the held-out data to that on the training data"
MORE_EXCITATION = "record a motion with more excitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions(Options):
    """Options of an identification from many logs.

    Attributes:
        identification: options for every log; options that need samples of all logs at once are
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
        logs: number of used logs, including the logs in an added file.
        samples: number of fitted samples.
        errors: error model of the standard deviations.
        identification: values, deviations and residuals.
        triangle: condensed form of all logs, to which logs can be added later.
        refused: reasons why logs were not used, by name of the log.
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
        base = self.identification.base
        estimate = self.identification.estimate
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
        base = self.identification.base
        estimate = self.identification.estimate
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
        training = self.identification.training
        held_out = self.identification.held_out
        return records(
            output=self.triangle.training.outputs,
            rmse=training,
            held_out_rmse=[None] * len(training) if held_out is None else held_out,
        )

    def write_triangle(self, path: str | Path) -> Path:
        """Write the condensed form of all logs, to which `FoldOptions.add` adds further logs.

        Returns:
            Path of the file.

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
    """Identify base parameters from many logs, each condensed to a small QR factor by a worker.

    Base parameters, deviations and errors on held-out samples agree with those of `identify` with
    all logs at once to 1e-10. The default deviations, for errors of unknown correlation, depend on
    the estimate, so every log is read three times. For decimated or independent errors, or clusters
    by logs or blocks, it is read once. The default deviations also contain the bias due to delays
    and compliant transmissions. Its terms are means over separate fits of the logs, so these
    deviations only approximate those of `identify`. Results of each log are stored in the folder
    and are not computed again when the identification is resumed.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: files, which must have the same paths for all workers.
        folder: folder of the stored results of each log.
        options: options of the identification, and workers.
        progress: called with the number of logs read, and the total number of readings.

    Returns:
        The identification, and the reasons why logs were not used (`refused`).

    Raises:
        InputError: options need the samples of all logs at once, or the logs of an added file
            again; or the folder belongs to another study.
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
    options = options or FoldOptions()
    mechanism = mechanism_of(machine)
    identification_options = options.identification
    _require_foldable_options(options)
    paths = [str(Path(log).absolute()) for log in logs]
    repeated_paths = sorted({path for path in paths if paths.count(path) > 1})
    InputError.raise_if_any(
        Problem("logs", f"{path} is given twice", "give each log once") for path in repeated_paths
    )
    readings = 3 if identification_options.errors == "autocorrelated" else 1
    folding = _Folding(mechanism, paths, Path(folder), options, readings, progress, {}, {})
    arrays = folding.read("fold", 0, {})
    refused = folding.refused
    faults = folding.faults
    added = [] if options.add is None else [read_triangle(options.add)]
    _require_some_logs(logs, refused)
    log_of_mark: dict[int, str] = {}
    for triangle in added:
        log_of_mark |= dict.fromkeys(triangle.marks.tolist(), f"a log of {options.add}")
    filter_lengths: list[float] = []
    timing: dict[int, dict[str, np.ndarray]] = {}
    arrays = _with_filter_lengths(_with_timing(arrays, timing), filter_lengths)
    triangle = fold_all([*added, *folding.distinct(arrays, log_of_mark)])
    folded = _identify(triangle, identification_options)
    timing_diagnostics: tuple[Diagnostic, ...] = ()
    if readings == 3:
        lags = residual_lags(max(filter_lengths)) if filter_lengths else 0
        folded = _with_scores(folding, folded, lags)
        folded, timing_diagnostics = _with_mean_timing(folded, list(timing.values()))
    return FoldedLogs(
        machine=mechanism.name,
        logs=triangle.logs,
        samples=triangle.training.samples,
        errors=str(identification_options.errors),
        identification=folded,
        triangle=triangle,
        refused=refused,
        faults=faults,
        diagnostics=(*_diagnostics(folded, refused, faults), *timing_diagnostics),
        provenance=provenance(
            options={"identification": texts_of(identification_options)},
            inputs={"logs": len(logs)},
            packages=("numpy", "scipy"),
        ),
    )


def _require_foldable_options(options: FoldOptions) -> None:
    """Reject options that need samples of several logs at once.

    Raises:
        InputError: an option needs samples of several logs at once, or the error model needs the
            logs of `options.add` again.
    """
    require_foldable(options.identification)
    if options.add is not None and options.identification.errors == "autocorrelated":
        what = "the default standard deviations need the logs of the added file again"
        remedy = "use logs, blocks, decimated or independent, for the added file as well"
        raise InputError.of("errors", what, remedy)


def _require_some_logs(logs: Sequence[str | Path], refused: Mapping[str, str]) -> None:
    """Raise an error if there are no logs, or if all logs are refused.

    Raises:
        IdentificationError: the reasons of the refused logs, with their remedies.
    """
    if not logs:
        raise IdentificationError.of("logs", "there are no logs", "give at least one log")
    if len(refused) == len(logs):
        texts = (text if log in text else f"{log}: {text}" for log, text in refused.items())
        raise IdentificationError([Problem(where="", what=text) for text in texts])


def _identify(triangle: LogTriangle, options: IdentificationOptions) -> FoldedIdentification:
    """Return the base parameters of all logs, with the estimator and errors of the options."""
    estimator = OrdinaryLeastSquares() if options.estimator == "ols" else WeightedLeastSquares()
    error_model = None
    if options.errors in ("logs", "blocks"):
        error_model = ClusteredErrors(by=str(options.errors).removesuffix("s"))
    return identify_folded(triangle, estimator, errors=error_model)


def _with_mean_timing(
    folded: FoldedIdentification, timing: Sequence[Mapping[str, np.ndarray]]
) -> tuple[FoldedIdentification, tuple[Diagnostic, ...]]:
    """Add the bias by delays and compliant transmissions to the covariance.

    Args:
        folded: identification from all logs.
        timing: timing arrays and QR factors of each log, see `_with_timing`.

    Returns:
        The identification with the larger covariance, and diagnostics of the terms.
    """
    names = folded.base.names
    normals = [_normal_matrix(entry["training_triangles"], folded) for entry in timing]
    terms = mean_timing_terms(timing, normals, names, folded.estimate)
    folded = replace(folded, estimate=with_bias_covariance(folded.estimate, terms))
    uncovered = sum(not has_timing(entry, names) for entry in timing)
    return folded, _timing_diagnostics(terms, uncovered / len(timing))


def _diagnostics(
    folded: FoldedIdentification, refused: Mapping[str, str], faults: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a fit to folded logs."""
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
            advice="the model does not predict other motions: train with more excitation, or add the "
            "missing effects to the model",
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
    terms: Sequence[TimingTerm], uncovered_fraction: float
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of delays and compliant transmissions in all logs together.

    Args:
        terms: means of the terms over the logs.
        uncovered_fraction: fraction of the logs whose separate fit does not determine the terms.
    """
    significant = [f"{term.kind} of {', '.join(term.outputs)}" for term in terms if term.is_shown]
    return (
        diagnostic(
            "delays and compliant transmissions that are significant over all logs",
            float(len(significant)),
            at_most=0.0,
            advice=f"{'; '.join(significant)}: align force and motion in time, or excite lower frequencies",
        ),
        diagnostic(
            "fraction of logs whose delays and bending the standard deviations do not cover",
            uncovered_fraction,
            at_most=MAX_LOGS_WITHOUT_TIMING,
            advice="deviations may be too small: record logs that each determine all parameters",
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
        self, logs_arrays: Iterator[dict[str, np.ndarray]], log_of_mark: dict[int, str]
    ) -> Iterator[LogTriangle]:
        """Yield the condensed logs, and reject logs that repeat the samples of another log.

        `log_of_mark` maps the fingerprint of the samples of each accepted log to its name.
        """
        logs = [log for log in self.logs if log not in self.refused]
        for log, triangle in zip(logs, map(triangle_of, logs_arrays), strict=True):
            first = log_of_mark.setdefault(int(triangle.marks[0]), log)
            if first == log:
                yield triangle
            else:
                self.refused[log] = f"has the same samples as {first}; each log is used once"

    def read(
        self, result: str, number: int, extra_options: Mapping[str, Any]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Return the arrays of all logs that are not rejected; record rejected and faulty logs.

        Args:
            result: name of the calculation.
            number: number of the reading, from 0.
            extra_options: options in addition to those of the identification.

        Raises:
            IdentificationError: a log that has been read before cannot be read again.
        """
        count = len(self.logs)
        folder = self.folder / f"reading-{number + 1}"
        study = Study(
            machine=self.machine.name,
            machine_text=dumps(self.machine),
            variations=(VariedInput(name=LOG, kind="list", values=tuple(self.logs)),),
            result=result,
            options=texts_of(self.options.identification) | dict(extra_options),
            keep=STORED_SCALARS,
            whole=tuple(range(count)),
            limits={},
        )

        report = self.progress or (lambda *_: None)
        readings = self.readings
        run_study(
            study,
            folder,
            self.options.study,
            progress=lambda n, total: report(number * count + n, readings * total),
        )
        stored = StudyFolder(folder)
        problems = stored.column(PROBLEM)
        faults = stored.column("output.faults")
        samples = stored.column("sample").astype(int)
        refused = {}
        for i, text in zip(samples, problems, strict=True):
            if text:
                refused[self.logs[i]] = str(text)
        for i in set(range(count)) - set(samples.tolist()):
            refused[self.logs[i]] = "its workers died while they read it"
        reread_problems = [
            Problem("", f"cannot be read again: {text}", file=log) for log, text in refused.items()
        ]
        if number:
            IdentificationError.raise_if_any(
                p for p in reread_problems if p.file not in self.refused
            )
        self.refused.update(refused)
        for i, fault_count in zip(samples, faults, strict=True):
            if fault_count > 0:
                self.faults[self.logs[i]] = int(fault_count)
        indices = [i for i in range(count) if self.logs[i] not in self.refused]
        return (arrays_of(stored.whole(i)) for i in indices)


def _with_timing(
    logs_arrays: Iterator[dict[str, np.ndarray]], timing: dict[int, dict[str, np.ndarray]]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of logs, and store timing arrays and QR factors by the log's fingerprint."""
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
        triangles: (n_measured, n + 1, n + 1) QR factors of the fitted samples of the log.
        folded: identification of all logs.
    """
    base = triangles[:, :, list(folded.base.independent)] * folded.estimate.weights[:, None, None]
    return np.asarray(np.einsum("kmi,kmj->ij", base, base))


def _with_filter_lengths(
    logs_arrays: Iterator[dict[str, np.ndarray]], filter_lengths: list[float]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays of logs, and append the lengths of their filters to a list."""
    for arrays in logs_arrays:
        if "lobe" in arrays:
            filter_lengths.append(float(arrays["lobe"]))
        yield arrays


def _with_scores(
    folding: _Folding, folded: FoldedIdentification, lags: int
) -> FoldedIdentification:
    """Return the identification after the second and the third reading.

    Args:
        folding: readings of the logs.
        folded: identification from all logs.
        lags: number of lags in the correlation of residuals; 0 if no filter has a known length.
    """
    directions = ScoreDirections.of(folded)
    names = ("independent", "values", "weights", "sensitivity")
    flat = {name: np.ravel(getattr(directions, name)).tolist() for name in names}
    second = list(folding.read("fold-scores", 1, {"directions": flat, "lags": lags}))
    products = [arrays.pop("residuals") for arrays in second if "residuals" in arrays]
    log_sums = (ScoreSums(samples=int(arrays.pop("samples")), **arrays) for arrays in second)
    sums = reduce(ScoreSums.__add__, log_sums)
    score_options: dict[str, Any] = {"directions": flat, "kernel": sums.kernel.tolist()}
    total = np.zeros(0)
    if products:
        shortest = min(map(len, products))
        total = np.sum([part[:shortest] for part in products], axis=0)
        score_options["correlation"] = fading_correlation(total).tolist()
    third = list(folding.read("fold-scores", 2, score_options))
    floor = None
    if products:
        floor = NoiseFloor(
            squares=total[0], spread=np.sum([arrays["noise"] for arrays in third], axis=0)
        )
    return with_autocorrelation(folded, sums, (arrays["spread"] for arrays in third), floor)
