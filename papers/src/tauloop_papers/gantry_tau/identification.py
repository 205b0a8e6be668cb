"""Identification of a machine with hysteresis, a flexible frame and part errors by two runs.

The forces of the structure are the difference of a run with it and a run without. Models from hand
measurement predict them. Least squares on small and on optimized motions, and a physically
consistent fit, estimate the parameters. Their identifiability is analyzed by joint model, measured
forces and motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.common.result import Diagnostic, diagnostic, plain, provenance
from tauloop.formats import load
from tauloop.identification import CONNECTED_FORCE, OWN_FORCE, parameter_ties
from tauloop.logs import TIME, samples
from tauloop.model import Model
from tauloop.motion import Multisine
from tauloop_papers.gantry_tau.fits import (
    DataSet,
    consistent,
    data_set,
    growth,
    least_squares,
    multisine,
    nearest,
    negative_share,
    predicted,
    relative_rms,
    simple_forces,
    unmeasured_rms,
    without_second_run,
)
from tauloop_papers.gantry_tau.identifiability import LIMIT_TOLERANCE, designed, judged, tellable
from tauloop_papers.gantry_tau.pattern import pattern
from tauloop_papers.gantry_tau.plant import Plant
from tauloop_papers.gantry_tau.results import Findings, Left, Shown
from tauloop_papers.gantry_tau.settings import SETTINGS, TwoRunSettings
from tauloop_papers.gantry_tau.table import choices, comparisons, printed
from tauloop_papers.reproduction import EXPERIMENTS, Progress, Reproduction

#: Largest error of the delay between the runs, s; a hundredth of a sample.
DELAY_ERROR = 5e-5
#: Picture rate of the film, Hz.
FILM_RATE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRunIdentification(Reproduction):
    """The experiment's results.

    Attributes:
        settings: settings of the experiment.
        outputs: the measured actuators.
        parameters, units: the unknowns.
        described: values of the unknowns in the machine file, SI.
        findings: all results.
        shown: the rows of Table 1 over time, the last one on the hold-out motion.
        filmed: positions of all actuators (N, n_u) on the motion of all actuators, m, at `FILM_RATE`.
    """

    settings: TwoRunSettings
    outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    described: np.ndarray
    findings: Findings
    shown: tuple[Shown, ...]
    filmed: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallMotions:
    """Records of a machine on small motions.

    Attributes:
        first, moving, training, held_out: the records.
        motions: the motions of first, moving and held_out.
    """

    first: DataSet
    moving: DataSet
    training: list[DataSet]
    held_out: DataSet
    motions: tuple[Multisine, Multisine, Multisine]


def recorded(
    settings: TwoRunSettings, plant: Plant, model: Model, whole: Model, rng: np.random.Generator
) -> SmallMotions:
    """Record small motions with and without structure; `whole` includes the drives' parameters."""
    motion_first = multisine(settings, model, settings.first, rng)
    first = data_set(settings, plant, model, motion_first, rng, "first")
    motion_moving = multisine(settings, model, None, rng)
    moving = data_set(settings, plant, model, motion_moving, rng, "moving")
    training = [
        data_set(
            settings,
            plant,
            model,
            multisine(settings, model, held, rng),
            rng,
            f"set {k + 1}",
            whole,
        )
        for k, held in enumerate(settings.training)
    ]
    motion = multisine(settings, model, settings.validation, rng)
    return SmallMotions(
        first=first,
        moving=moving,
        training=training,
        held_out=data_set(settings, plant, model, motion, rng, "hold-out", whole),
        motions=(motion_first, motion_moving, motion),
    )


def run(progress: Progress, settings: TwoRunSettings = SETTINGS) -> TwoRunIdentification:
    """Record, subtract, identify, and compare.

    Raises:
        IdentificationError: data that cannot support a fit, or limits that no motion satisfies.
    """
    mechanism = load(settings.machine)
    structure = mechanism.with_values(dict.fromkeys(settings.removed, 0.0))
    model, whole = Model(structure), Model(mechanism)
    rng = np.random.default_rng(settings.seed)
    plant = Plant(settings, model, rng)
    progress("recording small motions, with the structure and without")
    small_motions = recorded(settings, plant, model, whole, rng)
    first, moving, held_out = small_motions.first, small_motions.moving, small_motions.held_out
    training = small_motions.training
    motion_first, motion_moving, motion = small_motions.motions
    progress("identifying")
    ties = parameter_ties(model, settings.parameters)
    built = nearest(ties, plant.pi)
    small = least_squares("small motions", training, held_out, built)
    alone = without_second_run(training, held_out)
    fitted = [consistent(settings, "small motions", model, training, held_out)]
    estimates, motions = [small], []
    for design in settings.designs:
        progress(f"identifying with {design.name}")
        chosen = designed(settings, structure, design)
        longer = len(training) / len(chosen)  # the same recording time
        sets = [
            data_set(settings, plant, model, series, rng, design.name, longer=longer)
            for series in chosen
        ]
        estimates.append(least_squares(design.name, sets, held_out, built))
        fitted.append(consistent(settings, design.name, model, sets, held_out))
        motions.append(judged(settings, structure, design.name, chosen))
    progress("analyzing identifiability")
    table = tellable(settings, structure)
    plants = None
    if settings.machine == SETTINGS.machine:  # the printed values are for this machine
        progress("looking for plants with the paper's pattern")
        plants = pattern(settings)
    progress("trying other machines")
    signs = negative_share(settings, model, training, rng)
    errors = growth(settings, model, first, rng)
    identified = (
        small.values if held_out.data.ties is None else held_out.data.ties.expand(small.values)
    )
    shown = (
        _shown("3-DOF", first, motion_first, simple_forces(settings, first)),
        _shown("5-DOF I", first, motion_first, predicted(first, model.pi)),
        _shown("5-DOF II", moving, motion_moving, predicted(moving, model.pi)),
        _shown("identified", held_out, motion, predicted(held_out, identified)),
    )
    described = np.array([mechanism.parameters[name].value for name in settings.parameters])
    findings = Findings(
        rows={
            curves.row: relative_rms(curves.connected - curves.own, curves.model)
            for curves in shown
        },
        unmeasured={
            "5-DOF I": unmeasured_rms(first, model.pi),
            "5-DOF II": unmeasured_rms(moving, model.pi),
            "identified": unmeasured_rms(held_out, identified),
        },
        over_connected=_over_connected(first),
        built=built,
        estimates=tuple(estimates),
        consistent=tuple(fitted),
        alone=tuple(part.rmse for part in alone.held_out),
        identifiability=table,
        motions=tuple(motions),
        left=_left(held_out),
        delay=held_out.two.delay,
        signs=signs,
        growth=errors,
        pattern=plants,
    )
    return TwoRunIdentification(
        experiment=EXPERIMENTS["gantry-tau"],
        settings=settings,
        comparisons=comparisons(settings, ties.units, findings),
        choices=choices(settings, plant, structure, errors),
        printed=printed(settings, findings, described),
        outputs=settings.measured,
        parameters=settings.parameters,
        units=ties.units,
        described=described,
        findings=findings,
        shown=shown,
        filmed=motion_moving.sample(
            np.arange(0.0, settings.recording.period, 1.0 / FILM_RATE)
        ).position,
        diagnostics=_diagnostics(settings, [first, moving, *training, held_out], findings),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi", "cvxpy", "clarabel"),
            options=plain(settings),
            inputs={},
        ),
    )


def _left(recorded: DataSet) -> Left:
    def rms(values: np.ndarray) -> tuple[float, ...]:
        return tuple(np.sqrt(np.mean(values**2, axis=0)).tolist())

    return Left(
        noise=tuple(recorded.two.noise.values()),
        vibration=rms(recorded.vibration),
        load=rms(recorded.load),
        removed=rms(samples(recorded.two.log, OWN_FORCE)),
        force=rms(recorded.forces),
    )


def _over_connected(recorded: DataSet) -> float:
    """Return the mean ratio of the structure's largest force to the largest connected one."""
    whole = np.abs(samples(recorded.two.log, CONNECTED_FORCE)).max(axis=0)
    return float(np.mean(np.abs(recorded.forces).max(axis=0) / whole))


def _shown(row: str, recorded: DataSet, motion: Multisine, model: np.ndarray) -> Shown:
    log = recorded.two.log
    period = motion.sample(log[TIME].to_numpy())
    return Shown(
        row=row,
        time=period.time,
        connected=samples(log, CONNECTED_FORCE),
        own=samples(log, OWN_FORCE),
        model=model,
        velocity=period.velocity[:, recorded.data.kept],
    )


def _diagnostics(
    settings: TwoRunSettings, sets: list[DataSet], findings: Findings
) -> tuple[Diagnostic, ...]:
    chosen = [settings.parameters.index(name) for name in settings.inertias]
    small, fitted = findings.estimates[0], findings.consistent[0]
    surely = small.values[chosen] < -small.deviations[chosen]
    ratios = np.array(fitted.rows) / np.array(small.rows)
    missed = sum(
        abs(row.rank - row.stated) for row in findings.identifiability if row.stated is not None
    )
    return (
        diagnostic(
            "delay between the runs, largest error of all motions",
            max(abs(recorded.two.delay - settings.recording.late) for recorded in sets),
            at_most=DELAY_ERROR,
            unit="s",
            advice="check the alignment of the runs",
        ),
        diagnostic(
            "moments of inertia below zero by more than their standard deviation, least squares, small motions",
            np.sum(surely),
            at_least=1.0,
            advice="the paper's result is not reproduced: these motions determine the inertias",
        ),
        diagnostic(
            "least principal moment of inertia of a body, all consistent fits",
            min(min(fit.moments) for fit in findings.consistent),
            at_least=0.0,
            unit="kg m^2",
            advice="report this fault of Tauloop: a fit is not physically consistent",
        ),
        diagnostic(
            "hold-out error of the consistent fit over that of least squares, small motions, worst actuator",
            ratios.max(),
            at_most=settings.consistency,
            advice="check the prior and its weight: physical limits increase the error too much",
        ),
        diagnostic(
            "difference of the numbers of determined parameters from the stated ones, sum",
            missed,
            at_most=0.0,
            advice="check layout and motions: ranks differ from the stated ones",
        ),
        diagnostic(
            "largest share of a limit that a design uses",
            max((motion.used for motion in findings.motions), default=None),
            at_most=1.0 + LIMIT_TOLERANCE,
            advice="check the limits: a design exceeds them",
        ),
    )
