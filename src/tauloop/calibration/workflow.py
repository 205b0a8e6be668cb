"""Calibration in one call, from measurements to a geometry with uncertainties and assessments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import numpy as np

from tauloop.calibration.fitting import FitOptions, fit_geometry
from tauloop.calibration.judging.validation import (
    UnknownsComparison,
    bootstrap,
    compare_unknowns,
    leave_one_out,
)
from tauloop.calibration.measurements.measurement_grammar import INSTRUMENT_KINDS
from tauloop.calibration.measurements.measurement_set import MeasurementSet, joined
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.problem import CalibrationProblem, calibration_problem
from tauloop.calibration.problem.residuals import FORWARD_KINEMATICS, RESIDUALS, ResidualKind
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.calibration.result import Calibration
from tauloop.calibration.solving.align import aligned_together
from tauloop.calibration.solving.exchanges import indistinguishable_swaps
from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.execution.processes import SharedWork
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.records import dataclass
from tauloop.formats.library import mechanism_of
from tauloop.logs.files.opening import TableFrame
from tauloop.mechanism.description.units import ANGLE, LENGTH, quantity
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource

#: Measurements: a file, a table with the columns of a CSV file, a measurement set or a series.
Measurements = str | Path | TableFrame | MeasurementSet | Series
#: A function that is called with the phase, and the completed and total number of steps.
PhaseProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOptions(Options):
    """Options of a calibration: measurements, unknowns, fit and assessments.

    Attributes:
        measure: kind of measurement that a bare table contains.
        noise: standard deviation of measurements in a bare table, such as '0.02 mm', or for poses
            '0.02 mm,0.1 mrad'; a number is in SI units.
        temperature_noise: standard deviation of temperatures in a bare table, such as '0.1 K'.
        encoder_noise: standard deviation of the encoders, such as '0.01 mm', in place of that
            in the measurement file; it determines the weights of encoders of redundant drives.
        data: folder of the data files that YAML files refer to; by default that of the YAML file.
        parameters: parameters to estimate, by name or pattern, separated by commas; NAME=PATTERN
            ties all matches. By default those that the measurement set proposes.
        priors: patterns of unknowns whose tolerance is used as a prior; '*' for all. A diagnostic
            reports whether the priors are too tight.
        tolerances: usual sizes of corrections; by default those of the measurement set.
        residuals: definition of the residuals.
        fit: options of the fit.
        equilibrium: assume static equilibrium at every pose, in the degrees of freedom that the
            actuators do not determine: weight and springs determine the rest of the pose. An
            example is a platform with fewer cables than degrees of freedom.
        align: start from the instrument frames that fit the nominal machine best; tied frames are
            aligned together.
        compare_with: another set of unknowns, in the form of the parameters, to compare with on
            held-out poses.
        random_splits: number of random 5-fold splits for that comparison.
        replicates: number of bootstrap replicates; 0 for no bootstrap.
        leave_one_out: predict every pose by a fit to all other poses.
        seed: seed of random draws.
        workers: number of parallel workers; the result does not depend on it.

    Examples:
        >>> import tauloop as tl
        >>> tl.CalibrationOptions(parameters=("track*.length",), noise="0.02 mm").parameters
        ('track*.length',)
    """

    measure: str = option("position", choices=INSTRUMENT_KINDS)
    noise: str | float | tuple[str | float, ...] | None = option(None, read=str, metavar="QUANTITY")
    temperature_noise: str | float = option(0.0, metavar="QUANTITY")
    encoder_noise: str | float | None = None
    data: Path | None = None
    parameters: tuple[str, ...] = option(
        (), read=listed, repeated=True, names="parameters", metavar="NAMES"
    )
    priors: tuple[str, ...] = option((), read=listed, repeated=True, metavar="NAMES")
    tolerances: Tolerances | None = option(None, flag="")
    residuals: ResidualKind = option(FORWARD_KINEMATICS, named=RESIDUALS)
    fit: FitOptions = field(default_factory=FitOptions)
    equilibrium: bool = False
    align: bool = False
    compare_with: tuple[str, ...] = option((), read=listed, repeated=True)
    random_splits: int = option(30, least=2)
    replicates: int = option(0, least=0)
    leave_one_out: bool = False
    seed: int = option(0, least=0)
    workers: int = option(1, least=1, flag="--workers -j", metavar="N")


@keywords(CalibrationOptions)
@solving(IdentificationError)
def calibrate(
    machine: MachineSource,
    measurements: Measurements | Sequence[Measurements],
    options: CalibrationOptions | None = None,
    *,
    progress: PhaseProgress | None = None,
) -> Calibration:
    """Calibrate a machine; return standard deviations and the unknowns that cannot be estimated.

    Unknowns are geometric parameters. With columns of loads and temperatures (`Series`), they can
    also be stiffnesses, coefficients of expansion and offsets of thermometers. Without a load, only
    the weight deflects the machine. The calibrated geometry is that of the weightless machine at
    the reference temperature.

    The measurements are checked and the identifiable unknowns are chosen. Corrections are the
    (robust) least-squares solution of the whitened residuals. The options request further
    assessments: see `fit_geometry`, `indistinguishable_swaps`, `leave_one_out`, `bootstrap` and
    `compare_unknowns`.

    Args:
        machine: the nominal machine: a model, a mechanism, a path, or the name of a shipped
            machine.
        measurements: files or tables (`read_measurements`), measurement sets, or series, one or
            several.
        options: unknowns, fit and assessments.
        progress: called with the phase, and the completed and total number of steps.

    Returns:
        The calibration: corrections of the unknowns with standard deviations (`to_pandas()`), the
        calibrated machine, and the requested assessments.

    Raises:
        InputError, LogError, DescriptionError: a file, name or value is invalid.
        IdentificationError: the data do not determine the unknowns; lists all reasons.
        PoseError: a measured pose is out of reach.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> nominal = tl.load("five_bar")
        >>> true = nominal.with_values({"crank_length": nominal.parameters["crank_length"].value + 1e-3})
        >>> motors = np.random.default_rng(1).uniform([1.6, 1.2], [1.9, 1.5], (12, 2))
        >>> state = tl.Model(true).forward_kinematics(motors)
        >>> read = np.stack([state.coordinate("platform.x"), state.coordinate("platform.y"), np.zeros(12)], axis=1)
        >>> tracker = tl.calibration.Position(name="tracker")
        >>> series = tl.calibration.Series(instrument=tracker, encoders=motors, readings=read, noise=1e-5)
        >>> calibration = tl.calibrate(nominal, series, parameters=("crank_length",))
        >>> calibration.to_pandas()["correction"].round(6).tolist()
        [0.001]
    """
    options = options or CalibrationOptions()
    report = progress or (lambda phase, done, total: None)
    mechanism = mechanism_of(machine)
    with SharedWork(options.workers) as processes:
        measurement_set = _measurement_set(mechanism, measurements, options)
        parameters = options.parameters or measurement_set.parameters
        problem = _problem(mechanism, measurement_set, parameters, options)
        rng = np.random.default_rng(options.seed)
        result = fit_geometry(problem, rng, options=options.fit)
        exchanges = indistinguishable_swaps(
            result.problem, result.solution, options.fit.swap_search_time
        )
        held_out = None
        resampled = None
        if options.leave_one_out:
            tick = partial(report, "leave-one-out")
            held_out = leave_one_out(result.problem.predicting(), result.solution, tick, processes)
        if options.replicates:
            tick = partial(report, "bootstrap")
            resampled = bootstrap(
                result.problem,
                result.solution,
                rng,
                replicates=options.replicates,
                progress=tick,
                processes=processes,
            )
        comparison = None
        if options.compare_with:
            comparison = _compare_sets(
                mechanism, measurement_set, result, options, rng, report, processes
            )
    return replace(
        result,
        exchanges=exchanges,
        leave_one_out=held_out,
        bootstrap=resampled,
        comparison=comparison,
    )


def _measurement_set(
    mechanism: Mechanism,
    measurements: Measurements | Sequence[Measurements],
    options: CalibrationOptions,
) -> MeasurementSet:
    """Return all measurements as one set, with the changes that the options request."""
    items = [measurements] if isinstance(measurements, Measurements) else measurements
    sets = []
    for item in items:
        if isinstance(item, str | Path | TableFrame):
            item = read_measurements(
                item,
                mechanism,
                kind=options.measure,
                noise=options.noise,
                folder=options.data,
                temperature_noise=options.temperature_noise,
            )
        if isinstance(item, Series):
            item = MeasurementSet(series=(item,))
        if not isinstance(item, MeasurementSet):
            what = f"{item!r:.40} is of type {type(item).__name__}"
            remedy = (
                "give a path, a pandas.DataFrame, a MeasurementSet or a Series of tl.calibration"
            )
            raise InputError.of("measurements", what, remedy)
        sets.append(item)
    measurement_set = joined(sets)
    series = measurement_set.series
    if options.align:
        parameters = options.parameters or measurement_set.parameters
        series = aligned_together(
            mechanism, series, parameters, options.compare_with, equilibrium=options.equilibrium
        )
    tolerances = options.tolerances or measurement_set.tolerances or Tolerances()
    if options.priors:
        tolerances = replace(tolerances, priors=options.priors)
    if options.encoder_noise is not None:
        measurement_set = replace(
            measurement_set, encoder_noise=_encoder_noise(options.encoder_noise)
        )
    return replace(measurement_set, series=series, tolerances=tolerances)


def _encoder_noise(value: str | float) -> float:
    """Return the checked standard deviation of encoders, m or rad."""
    if isinstance(value, str):
        noise = quantity("encoder_noise", value, LENGTH, ANGLE)
    else:
        noise = float(value)
    if not (np.isfinite(noise) and noise > 0.0):
        raise InputError.of(
            "encoder_noise",
            f"is {noise:g}",
            "give a positive standard deviation, such as '0.01 mm'",
        )
    return noise


def _problem(
    mechanism: Mechanism,
    measurement_set: MeasurementSet,
    parameters: tuple[str, ...],
    options: CalibrationOptions,
) -> CalibrationProblem:
    if not parameters:
        raise InputError.of(
            "parameters",
            "no unknowns are given",
            "name the parameters to estimate, such as 'track*.length,track*.offset_?'",
        )
    return calibration_problem(
        mechanism,
        measurement_set.series,
        parameters,
        residuals=options.residuals,
        tolerances=measurement_set.tolerances,
        encoder_noise=measurement_set.encoder_noise,
        equilibrium=options.equilibrium,
        bounds={**measurement_set.bounds, **options.fit.bounds},
    )


def _compare_sets(
    mechanism: Mechanism,
    measurement_set: MeasurementSet,
    result: Calibration,
    options: CalibrationOptions,
    rng: np.random.Generator,
    report: PhaseProgress,
    processes: SharedWork,
) -> UnknownsComparison:
    """Compare the identifiable unknowns of both sets on the same held-out poses."""
    other = fit_geometry(
        _problem(mechanism, measurement_set, options.compare_with, options),
        rng,
        options=options.fit,
    )
    sets = {
        "--parameters": result.problem.predicting(),
        "--compare-with": other.problem.predicting(),
    }
    tick = partial(report, "comparing")
    return compare_unknowns(
        sets, rng, draws=options.random_splits, progress=tick, processes=processes
    )
