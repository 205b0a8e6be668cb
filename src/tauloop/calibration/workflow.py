"""Calibration from measurements to a judged geometry: the whole workflow in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import numpy as np

from tauloop.calibration.fitting import FitOptions, fit_geometry
from tauloop.calibration.judging.validation import (
    Comparison,
    bootstrap,
    compare_unknowns,
    leave_one_out,
)
from tauloop.calibration.measurements.measurement_grammar import KINDS
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
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.processes import SharedWork
from tauloop.common.records import dataclass
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import ANGLE, LENGTH
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource

#: Measurements: a file, a measurement set or a series of it, or several of them.
Measurements = str | Path | MeasurementSet | Series
#: Called with the phase, what is done and what there is to do.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOptions(Options):
    """What is estimated from which measurements, how it is fitted, and by what it is judged.

    Attributes:
        measure: kind of measurement that a bare table contains.
        noise: standard deviation of measurements in a bare table, such as '0.02 mm'; a number is in
            SI units.
        encoder_noise: standard deviation of the encoders, such as '0.01 mm', in place of that of
            the measurement set; encoders of redundant drives are weighed by it.
        data: folder of the data files that YAML files name; by default that of the YAML file.
        parameters: parameters to estimate, by name or pattern, separated by commas; NAME=PATTERN
            ties all that match. Those that the measurement set proposes without it.
        priors: patterns of unknowns whose tolerance is a prior; '*': all. The data show whether it
            is too tight.
        tolerances: usual sizes of corrections; those of the measurement set without them.
        residuals: what the residuals are.
        fit: how they are made small.
        equilibrium: the machine hangs still at every pose, in the freedoms that its actuators leave
            open, as a platform on fewer cables than freedoms does: weight and springs give the rest
            of the pose.
        align: start from the instrument frames that fit the nominal machine best; tied ones are
            aligned together.
        against: another set of unknowns, as the parameters, to compare with on unseen poses.
        draws: random draws of 5 folds for that comparison.
        replicates: bootstrap replicates; none for 0.
        leave_one_out: judge every pose by a fit without it.
        seed: seed of random draws.
        processes: number of parallel workers; no result depends on it.

    Examples:
        >>> import tauloop as tl
        >>> tl.CalibrationOptions(parameters=("track*.length",), noise="0.02 mm").parameters
        ('track*.length',)
    """

    measure: str = option("position", choices=KINDS)
    noise: str | float | None = option(None, metavar="QUANTITY")
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
    against: tuple[str, ...] = option((), read=listed, repeated=True)
    draws: int = option(30, least=2)
    replicates: int = option(0, least=0)
    leave_one_out: bool = False
    seed: int = option(0, least=0)
    processes: int = option(1, least=1, flag="--workers -j", metavar="N")


@keywords(CalibrationOptions)
@solving(IdentificationError)
def calibrate(
    machine: MachineSource,
    measurements: Measurements | Sequence[Measurements],
    options: CalibrationOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate a machine's geometry, with error bars, and say what the data cannot tell.

    Measurements are checked, the unknowns that they can show are chosen, corrections found by
    (robust) least squares of the whitened residuals, and judged as the options ask: see
    `fit_geometry`, `indistinguishable_swaps`, `leave_one_out`, `bootstrap` and `compare_unknowns`.

    Args:
        machine: the nominal machine: a model, a mechanism, a path, or the name of a shipped machine.
        measurements: files (`read_measurements`), measurement sets, or series, one or several.
        options: what is estimated and how.
        progress: called with the phase, what is done and what there is to do.

    Raises:
        InputError, LogError, DescriptionError: files, names or numbers that are wrong.
        IdentificationError: the data cannot support the calibration, with all reasons.
        PoseError: poses are out of reach.

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
    options, report = options or CalibrationOptions(), progress or (lambda phase, done, total: None)
    mechanism = mechanism_of(machine)
    with SharedWork(options.processes) as processes:
        measured = _measured(mechanism, measurements, options)
        problem = _problem(mechanism, measured, options.parameters or measured.parameters, options)
        rng = np.random.default_rng(options.seed)
        result = fit_geometry(problem, rng, options=options.fit)
        exchanges = indistinguishable_swaps(result.problem, result.solution, options.fit.exchanges)
        held_out = drawn = None
        if options.leave_one_out:
            tick = partial(report, "leave-one-out")
            held_out = leave_one_out(result.problem.predicting(), result.solution, tick, processes)
        if options.replicates:
            tick = partial(report, "bootstrap")
            drawn = bootstrap(
                result.problem,
                result.solution,
                rng,
                replicates=options.replicates,
                progress=tick,
                processes=processes,
            )
        comparison = None
        if options.against:
            comparison = _compared(mechanism, measured, result, options, rng, report, processes)
    return replace(
        result, exchanges=exchanges, leave_one_out=held_out, bootstrap=drawn, comparison=comparison
    )


def _measured(
    mechanism: Mechanism,
    measurements: Measurements | Sequence[Measurements],
    options: CalibrationOptions,
) -> MeasurementSet:
    """All measurements as one set, as the options would have it."""
    several = [measurements] if isinstance(measurements, Measurements) else measurements
    sets = []
    for item in several:
        if isinstance(item, str | Path):
            kind, noise, folder = options.measure, options.noise, options.data
            item = read_measurements(item, mechanism, kind=kind, noise=noise, folder=folder)
        sets.append(MeasurementSet(series=(item,)) if isinstance(item, Series) else item)
    measured = joined(sets)
    series = measured.series
    if options.align:
        parameters = options.parameters or measured.parameters
        series = aligned_together(
            mechanism, series, parameters, options.against, equilibrium=options.equilibrium
        )
    tolerances = options.tolerances or measured.tolerances or Tolerances()
    if options.priors:
        tolerances = replace(tolerances, priors=options.priors)
    if options.encoder_noise is not None:
        measured = replace(measured, encoder_noise=_encoder_noise(options.encoder_noise))
    return replace(measured, series=series, tolerances=tolerances)


def _encoder_noise(stated: str | float) -> float:
    """A standard deviation of encoders, m or rad."""
    noise = (
        quantity("encoder_noise", stated, LENGTH, ANGLE)
        if isinstance(stated, str)
        else float(stated)
    )
    if not (np.isfinite(noise) and noise > 0.0):
        raise InputError.of(
            "encoder_noise",
            f"is {noise:g}",
            "give a standard deviation above zero, such as '0.01 mm'",
        )
    return noise


def _problem(
    mechanism: Mechanism,
    measured: MeasurementSet,
    parameters: tuple[str, ...],
    options: CalibrationOptions,
) -> CalibrationProblem:
    if not parameters:
        raise InputError.of(
            "parameters",
            "no unknowns are named",
            "name them, such as 'track*.length,track*.offset_?'",
        )
    return calibration_problem(
        mechanism,
        measured.series,
        parameters,
        residuals=options.residuals,
        tolerances=measured.tolerances,
        encoder_noise=measured.encoder_noise,
        equilibrium=options.equilibrium,
        bounds={**measured.bounds, **options.fit.bounds},
    )


def _compared(
    mechanism: Mechanism,
    measured: MeasurementSet,
    result: Calibration,
    options: CalibrationOptions,
    rng: np.random.Generator,
    report: Progress,
    processes: SharedWork,
) -> Comparison:
    """Both sets of unknowns, each set's identifiable part, judged at the same poses."""
    other = fit_geometry(
        _problem(mechanism, measured, options.against, options), rng, options=options.fit
    )
    sets = {"--parameters": result.problem.predicting(), "--against": other.problem.predicting()}
    tick = partial(report, "comparing")
    return compare_unknowns(sets, rng, draws=options.draws, progress=tick, processes=processes)
