"""Results of each paper's method that the paper does not print, from a few lines each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tauloop as tl
from tauloop.drives import load_drive
from tauloop.dynamics import DynamicsOptions
from tauloop.identification import Excitation, ExcitationLimits, ExcitationTask, base_parameters
from tauloop.kinematics import random_states
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.motion import POLYNOMIAL_345, SampledMotion
from tauloop_papers.dual_motor.settings import SETTINGS as DUAL_MOTOR
from tauloop_papers.gantry_tau.identifiability import tellable
from tauloop_papers.gantry_tau.settings import SETTINGS as GANTRY_TAU
from tauloop_papers.nuwar.settings import SETTINGS as NUWAR
from tauloop_papers.nuwar.strokes import ellipse, planned
from tauloop_papers.rcid.settings import SETTINGS as RCID
from tauloop_papers.spidermill.models import Reduced
from tauloop_papers.spidermill.settings import SETTINGS as SPIDERMILL

#: Number of random states for ranks, and of random excitations compared with an optimized one.
STATES, RANDOM_EXCITATIONS = 60, 60
#: Noise of measured torques (N m) and forces (N), and samples per second.
TORQUE_NOISE, FORCE_NOISE, RATE = 0.4, 1.0, 1000.0
#: Number of harmonics and period (s) of an excitation, and its limits in addition to those of the
#: machine file (SI).
HARMONICS, PERIOD = 3, 1.0
GENTLE = ExcitationLimits(stroke=0.01, max_velocity=0.2, max_acceleration=3.0)
BRISK = ExcitationLimits(stroke=0.4, max_velocity=6.0, max_acceleration=100.0)
#: Masses that the papers print, or of which printed values consist.
NUWAR_FIGURES = ("arm_inertia", "arm_mass", "elbow_mass", "forearm_mass", "plate_mass")
RCID_FIGURES = ("payload_mass", "platform_mass", "carriage_mass", "link_mass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A value of a note.

    Attributes:
        what: description of the value in the note.
        figure: the value as text, with its unit.
    """

    what: str
    figure: str


def claims(name: str) -> tuple[Claim, ...]:
    """Return the values of an experiment's note; empty without a note."""
    return (
        tuple(Claim(what=what, figure=figure) for what, figure in NOTES[name]())
        if name in NOTES
        else ()
    )


def _operations(mechanism: Mechanism) -> dict[str, int]:
    """Return the number of operations of inverse dynamics by formulation."""
    counted = tl.count_operations(mechanism).costs
    return {item.formulation: item.total for item in counted if item.quantity == "inverse dynamics"}


def _rank(mechanism: Mechanism) -> str:
    """Return the numbers of base parameters and of inertial parameters for random motions."""
    model = Model(mechanism)
    states = random_states(model, STATES, np.random.default_rng(0))
    regressor = model.platform.regressor(states.position, states.velocity, states.acceleration)
    inertial = [k for k, parameter in enumerate(model.parameters) if parameter.group == "inertia"]
    names, units = zip(
        *((model.parameters[k].name, model.parameters[k].unit) for k in inertial), strict=True
    )
    base = base_parameters(regressor[:, :, inertial].reshape(-1, len(inertial)), names, units)
    return f"{base.rank} of {len(inertial)}"


def _excited(mechanism: Mechanism, names: tuple[str, ...], limits: ExcitationLimits) -> Excitation:
    """Return an excitation for some parameters of the file, optimized from a random start."""
    task = ExcitationTask(harmonics=HARMONICS, period=PERIOD, unknowns=names, limits=limits)
    options = tl.ExcitationOptions(task=task, random=RANDOM_EXCITATIONS, starts=1, polish=0)
    return tl.plan_excitation(mechanism, options)


def _conditions(excitation: Excitation) -> str:
    random = excitation.random
    return f"{random.median_si:.0f}; {random.best_si:.0f}; {excitation.conditions.si:.0f}"


def _deviations(
    mechanism: Mechanism,
    names: tuple[str, ...],
    forces: Callable[[Model], np.ndarray],
    noise: float,
) -> np.ndarray:
    """Return standard deviations of parameters in percent, from linear forces with white noise."""
    nominal = mechanism.parameters.values

    def of(name: str, share: float) -> np.ndarray:
        return forces(Model(mechanism.with_values({name: share * nominal[name]}))).ravel()

    columns = np.stack([(of(name, 1.2) - of(name, 0.8)) / 0.4 for name in names], axis=1)
    return np.asarray(100.0 * noise * np.sqrt(np.diag(np.linalg.inv(columns.T @ columns))))


def _rcid() -> Iterator[tuple[str, str]]:
    mechanism = tl.load(RCID.machine)
    operations = _operations(mechanism)
    yield "base parameters of inertial parameters", _rank(mechanism)
    yield "operations of the whole inverse dynamics", f"{operations['newton-euler']}"
    yield "the same by generalized momentum", f"{operations['generalized-momentum']}"
    excitation = _excited(mechanism, RCID_FIGURES, GENTLE)
    yield "condition number: random motions (median; best), optimized", _conditions(excitation)
    motion = excitation.series.sample(np.arange(round(RATE * PERIOD)) / RATE)
    shares = _deviations(
        mechanism,
        RCID_FIGURES,
        lambda model: (
            model.actuators.inverse_dynamics(
                motion.position, motion.velocity, motion.acceleration
            ).force
        ),
        FORCE_NOISE,
    )
    grams = [
        10.0 * share * mechanism.parameters[name].value
        for share, name in zip(shares, RCID_FIGURES, strict=True)
    ]
    yield (
        "deviations: payload, platform, carriage, link",
        ", ".join(f"{gram:.1f}" for gram in grams) + " g",
    )


def _nuwar() -> Iterator[tuple[str, str]]:
    mechanism = tl.load(NUWAR.machine)
    model = tl.Model(mechanism)
    stroke = planned(
        model, ellipse(NUWAR, NUWAR.scale), POLYNOMIAL_345, NUWAR, ranges=False
    ).sample(RATE)
    motion = (stroke.position, stroke.velocity, stroke.acceleration)
    exact = model.platform.inverse_dynamics(*motion).force
    known = tuple(name for name in NUWAR_FIGURES if name != "elbow_mass")
    shares = _deviations(
        mechanism,
        known,
        lambda machine: machine.platform.inverse_dynamics(*motion).force,
        TORQUE_NOISE,
    )
    yield "base parameters of inertial parameters", _rank(mechanism)
    excitation = _excited(mechanism, NUWAR_FIGURES, BRISK)
    yield "base parameters of the five printed figures", f"{excitation.base.rank}"
    yield (
        "deviations: arm's inertia, its mass, forearm, plate",
        ", ".join(f"{share:.1f}" for share in shares) + " %",
    )
    forearm = NUWAR.readings["per rod"] * mechanism.parameters["forearm_mass"].value
    per_rod = mechanism.with_values({"forearm_mass": forearm})
    heavier = tl.Model(per_rod).platform.inverse_dynamics(*motion).force
    yield (
        "RMS of the torque that the other reading adds",
        f"{np.sqrt(np.mean((heavier - exact) ** 2)):.2f} N m",
    )
    yield "condition number: random motions (median; best), optimized", _conditions(excitation)
    rate = np.gradient(stroke.velocity, stroke.time, axis=0, edge_order=2)
    by_speed = model.platform.inverse_dynamics(stroke.position, stroke.velocity, rate).force
    for word, forces in (("momenta", _from_momenta(model, stroke)), ("velocities", by_speed)):
        share = np.abs(forces - exact).max() / np.abs(exact).max()
        yield f"error by two-point differences of {word}", f"{100 * share:.2f} %"


def _from_momenta(model: Model, stroke: SampledMotion) -> np.ndarray:
    """Return forces of a motion without its accelerations, as `tauloop dynamics --from-momenta`."""
    ports = model.platform.ports
    heads = ["time [s]", *(f"position.{name} [m]" for name in ports.position.columns)]
    heads += [f"velocity.{name} [m/s]" for name in ports.velocity.columns]
    table = np.column_stack([stroke.time, stroke.position, stroke.velocity])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stroke.csv"
        np.savetxt(path, table, delimiter=",", header=",".join(heads), comments="", fmt="%.17g")
        return tl.inverse_dynamics(
            model, DynamicsOptions(motion=path, from_momenta=True)
        ).forces.force


def _spidermill() -> Iterator[tuple[str, str]]:
    reduced = Reduced(SPIDERMILL)
    options = tl.SymbolicBaseOptions(
        products=tuple(SPIDERMILL.products), lengths=tuple(SPIDERMILL.lengths)
    )
    regrouping = tl.symbolic_base_parameters(reduced.mechanism, options)
    yield "minimal parameters of eq. 5", f"{len(regrouping.base)} of {len(SPIDERMILL.products)}"
    yield "base parameters of the unreduced machine", _rank(tl.load(SPIDERMILL.machine))
    small = _operations(reduced.mechanism)["newton-euler"]
    yield (
        "operations of inverse dynamics, reduced; unreduced",
        f"{small}; {_whole(tl.load(SPIDERMILL.machine))}",
    )


def _whole(mechanism: Mechanism) -> int:
    (function,) = tl.export_c(mechanism, outputs="force").manifest["functions"]
    return int(sum(function["operations"]["once"].values()))


def _gantry_tau() -> Iterator[tuple[str, str]]:
    for row in tellable(GANTRY_TAU, tl.load(GANTRY_TAU.machine)):
        joints = "spin" if row.spins else "do not spin"
        yield (
            f"{row.case}, links that {joints}, {row.measured} forces",
            f"{row.rank} of {len(GANTRY_TAU.parameters)}",
        )


def _dual_motor() -> Iterator[tuple[str, str]]:
    line = load_drive(DUAL_MOTOR.line)
    preload, duration = line.parameters.values["preload"], tl.DriveOptions().duration
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("switched, as the file says", {}),
        ("always preloaded", {"motor_setup": "preloaded"}),
        ("one motor", {"motor_setup": "one"}),
        (
            "always preloaded, nothing fed forward",
            {"motor_setup": "preloaded", "values": {"feed_forward_share": 0.0}},
        ),
        ("switched, half the preload", {"values": {"preload": preload / 2}}),
    )
    for word, options in cases:
        criteria = tl.simulate_drive_line(line, tl.DriveOptions(**options)).record.criteria
        figures = (
            criteria.energy[0],
            criteria.rise_time[0],
            1e3 * criteria.overshoot[0],
            1e6 * criteria.swing[0],
        )
        yield (
            f"{word}: energy, rise time, overshoot, swing",
            "{:.0f}, {:.3f} s, {:.2f} mm, {:.0f} µm".format(*figures),
        )
    yield "energy that the preload takes at rest", f"{2 * preload**2 * duration:.0f}"


#: Values of notes by experiment.
NOTES: Mapping[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "dual-motor": _dual_motor,
    "gantry-tau": _gantry_tau,
    "nuwar": _nuwar,
    "rcid": _rcid,
    "spidermill": _spidermill,
}
