"""Pose and passive joints from more encoders than freedoms, by least squares, and which encoder disagrees.

The equations are those of `tauloop.model.encoder_fit`; encoders may sit on joints too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.equations.ports import coordinate_units
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.model.encoder_fit import AGREES, least_squares
from tauloop.model.model import MachineSource, modelled


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFit(Result):
    """States that agree best with all encoders.

    Attributes:
        model: of the machine.
        encoders: names: actuators, or coordinates.
        q: all coordinates (N, n_q).
        position: of the platform (N, n).
        residual: reading less model (N, n_e), m or rad.
        standardised: the same over what its noise and the other encoders let expect; zero where
            nothing watches it.
        redundancy: encoders beyond the freedoms.
    """

    model: Model = field(repr=False)
    encoders: tuple[str, ...]
    q: np.ndarray
    position: np.ndarray
    residual: np.ndarray
    standardised: np.ndarray
    redundancy: int

    def variables(self) -> Iterator[Variable]:
        """Platform, all coordinates and residuals, over the samples."""
        ports, topology = self.model.platform.ports.position, self.model.topology
        kinds = encoder_units(self.model)
        over = ("sample",)
        yield Variable(name="sample", values=np.arange(len(self.q)), over=over)
        yield from columns("position", ports.columns, ports.units, self.position, over)
        yield from columns(
            "q",
            topology.coordinate_names,
            [kinds[n] for n in topology.coordinate_names],
            self.q,
            over,
        )
        yield from columns(
            "residual", self.encoders, [kinds[name] for name in self.encoders], self.residual, over
        )


def encoder_units(model: Model) -> dict[str, str]:
    """Units of whatever an encoder may sit on."""
    names = dict(
        zip(model.topology.coordinate_names, coordinate_units(model.topology), strict=True)
    )
    turns = (model.topology.motor_turns(actuator) for actuator in model.mechanism.actuators)
    return names | {
        a.name: "rad" if t else "m" for a, t in zip(model.mechanism.actuators, turns, strict=True)
    }


@solving(PoseError)
def fit_encoders(
    machine: MachineSource,
    readings: Mapping[str, object],
    *,
    noise: float | Mapping[str, float] = 1e-5,
    start: np.ndarray | None = None,
) -> EncoderFit:
    """The states that agree best with the readings of all encoders: on actuators, and on any joint beside.

    The actuators' readings alone, of redundant actuators the leading ones', lead to the first state
    by forward kinematics; least squares over all readings then moves it.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        readings: by name of an actuator or a coordinate, (N,) or one number, m or rad.
        noise: standard deviation of a reading, m or rad, one for all or by name.
        start: coordinates near the first sample (n_q,); the reference pose without it.

    Returns:
        States and residuals; doubtful where an encoder disagrees with the others.

    Raises:
        InputError: a name that is none, readings that are missing or differ in number, noise that
            is not positive.
        PoseError: the actuators' readings lead out of reach.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("five_bar")
        >>> q = tl.Model(machine).assembly.q
        >>> names = ("motor1", "motor2")
        >>> actuators = dict(zip(names, tl.Model(machine).actuator_position(q)))
        >>> tl.simulation.observers.fit_encoders(machine, actuators).redundancy
        0
    """
    model = modelled(machine)
    leading, known = model.actuators.ports.position.columns, encoder_units(model)
    problems = Problems()
    problems += unknown_names(readings, known, "no actuator or coordinate {!r}", "known are {}")
    for name in leading:
        if name not in readings:
            problems.add(
                "readings",
                f"none of {name}, whose motion leads the machine",
                "give those of all actuators",
            )
    InputError.raise_if_any(problems)
    names = tuple(readings)
    arrays = [np.atleast_1d(np.asarray(readings[name], dtype=float)) for name in names]
    deviations = np.array(
        [noise.get(name, np.nan) if isinstance(noise, Mapping) else noise for name in names]
    )
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim > 1:
        shapes = ", ".join(
            f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True)
        )
        problems.add(
            "readings", f"differ in number: {shapes}", "give one row of numbers for each encoder"
        )
    elif not np.isfinite(arrays).all():
        problems.add("readings", "are not all finite", "leave out the samples that are not")
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        problems.add(
            "noise",
            "is missing, or not positive, for some encoder",
            "a standard deviation, m or rad",
        )
    InputError.raise_if_any(problems)
    return _fitted(model, names, np.stack(arrays, axis=1), deviations, start)


def _fitted(
    model: Model,
    names: tuple[str, ...],
    measured: np.ndarray,
    deviations: np.ndarray,
    start: np.ndarray | None,
) -> EncoderFit:
    entry, columns_of = model.actuators, model.actuators.ports.position.columns
    x = measured[:, [names.index(name) for name in columns_of]]
    q = np.atleast_2d(entry.track(x, start).q)
    n = len(entry.ports.velocity.columns)
    fit = least_squares(
        entry,
        sensing(model, names),
        lambda q: _readings(model, names, q),
        measured,
        deviations,
        x,
        q,
        moving=n,
    )
    residual, standardised = fit.residual, fit.standardised
    worst = np.unravel_index(np.argmax(np.abs(standardised)), standardised.shape)
    redundancy = len(names) - n
    unit = encoder_units(model)[names[worst[1]]]
    advice = (
        f"{names[worst[1]]} disagrees with the other encoders, by {residual[worst]:.3g} {unit} "
        f"in sample {worst[0]}: "
    )
    advice += "check its zero, its scale and its coupling, or calibrate the machine's lengths"
    return EncoderFit(
        diagnostics=(
            diagnostic(
                "largest standardised residual of an encoder",
                float(np.abs(standardised).max()) if redundancy else None,
                at_most=AGREES,
                advice=advice,
            ),
        ),
        provenance=provenance(
            options={"noise": deviations},
            inputs={"machine": model.mechanism.name, "samples": len(fit.q)},
        ),
        model=model,
        encoders=names,
        q=fit.q,
        position=model.platform_position(fit.q),
        residual=residual,
        standardised=standardised,
        redundancy=redundancy,
    )


def sensing(model: Model, names: tuple[str, ...]) -> np.ndarray:
    """Readings' rates per unit of all velocities (n_e, n_v)."""
    topology, rows = model.topology, []
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    for name in names:
        if name in actuators:
            rows.append(model.assembly.loops.transmission[actuators.index(name)])
        else:
            iq = topology.coordinate_names.index(name)
            rows.append(np.array([float(other == iq) for other in topology.q_of_v]))
    return np.array(rows)


def _readings(model: Model, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """Readings that the state has (N, n_e)."""
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    driven = model.actuator_position(q)
    state = [
        driven[:, actuators.index(name)]
        if name in actuators
        else q[:, model.topology.coordinate_names.index(name)]
        for name in names
    ]
    return np.stack(state, axis=1)
