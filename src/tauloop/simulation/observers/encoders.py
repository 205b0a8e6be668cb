"""Fit of pose and passive joints to redundant encoders, and detection of faulty encoders.

The equations are in `tauloop.model.positions.encoder_fit`. Encoders may be on actuators or on
joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import channels, numbered, several
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.equations.ports import coordinate_units
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.model.positions.encoder_fit import MAX_STANDARDIZED_RESIDUAL, least_squares


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFit(Result):
    """Machine states that best fit the readings of all encoders.

    Attributes:
        model: model of the machine.
        encoders: names of the actuators or coordinates with encoders.
        q: all coordinates (N, n_q).
        position: positions of the platform (N, n).
        residual: readings minus the values at the fitted states (N, n_e), m or rad.
        standardized: residuals divided by their expected standard deviations (N, n_e); zero for
            encoders whose readings the other encoders do not check.
        redundancy: number of encoders minus degrees of freedom.
    """

    quantity_order: ClassVar[tuple[str, ...]] = ("sample", "position", "q", "residual")
    model: Model = field(repr=False, metadata=OMITTED)
    encoders: tuple[str, ...]
    q: np.ndarray = field(
        metadata=several(
            numbered("sample", first=0), channels("sample", port="model.coordinate_port")
        )
    )
    position: np.ndarray = field(metadata=channels("sample", port="model.platform.ports.position"))
    residual: np.ndarray = field(
        metadata=channels("sample", names="encoders", units="encoder_units")
    )
    standardized: np.ndarray
    redundancy: int
    standardised = old_attribute("standardised", "standardized")

    @property
    def encoder_units(self) -> tuple[str, ...]:
        """Units of the readings, m or rad."""
        units = encoder_units(self.model)
        return tuple(units[name] for name in self.encoders)


def encoder_units(model: Model) -> dict[str, str]:
    """Return the units of all coordinates and actuators, by name."""
    names = dict(
        zip(model.topology.coordinate_names, coordinate_units(model.topology), strict=True)
    )
    for actuator in model.mechanism.actuators:
        names[actuator.name] = "rad" if model.topology.is_rotary(actuator) else "m"
    return names


@solving(PoseError)
def fit_encoders(
    machine: MachineSource,
    readings: Mapping[str, object],
    *,
    noise: float | Mapping[str, float] = 1e-5,
    start: np.ndarray | None = None,
) -> EncoderFit:
    """Fit the state of a machine to the readings of all encoders, on actuators and other joints.

    Forward kinematics with the leading actuators' readings gives initial states. A least-squares
    fit to all readings then corrects them.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        readings: readings (N,), or a single number, m or rad, by name of the actuator or
            coordinate.
        noise: standard deviation of a reading, m or rad, for all or by name.
        start: coordinates near the first sample (n_q,); by default the reference pose.

    Returns:
        States and residuals. The status is doubtful if an encoder disagrees with the others.

    Raises:
        InputError: a name is unknown, readings are missing or differ in number, or the noise is not
            positive.
        PoseError: the actuators' readings are out of reach.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("five_bar")
        >>> q = tl.Model(machine).assembly.q
        >>> names = ("motor1", "motor2")
        >>> actuators = dict(zip(names, tl.Model(machine).actuator_position(q)))
        >>> tl.simulation.observers.fit_encoders(machine, actuators).redundancy
        0
    """
    model = modeled(machine)
    leading, known = model.actuators.ports.position.columns, encoder_units(model)
    problems = Problems()
    problems += unknown_names(readings, known, "no actuator or coordinate {!r}", "known are {}")
    for name in leading:
        if name not in readings:
            problems.add(
                "readings",
                f"the leading actuator {name} has no readings",
                "give readings of all actuators",
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
        problems.add("readings", "are not all finite", "remove samples with non-finite readings")
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        problems.add(
            "noise",
            "is missing or not positive for an encoder",
            "give a standard deviation, m or rad",
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
    actuators = model.actuators
    leading = actuators.ports.position.columns
    x = measured[:, [names.index(name) for name in leading]]
    q = np.atleast_2d(actuators.track(x, start).q)
    n = len(actuators.ports.velocity.columns)
    fit = least_squares(
        actuators,
        sensing(model, names),
        lambda q: _readings(model, names, q),
        measured,
        deviations,
        x,
        q,
        moving=n,
    )
    residual, standardized = fit.residual, fit.standardized
    worst = np.unravel_index(np.argmax(np.abs(standardized)), standardized.shape)
    redundancy = len(names) - n
    unit = encoder_units(model)[names[worst[1]]]
    advice = (
        f"{names[worst[1]]} disagrees with the other encoders, by {residual[worst]:.3g} {unit} "
        f"in sample {worst[0]}: check its zero, its scale and its coupling, or calibrate the "
        "machine's lengths"
    )
    return EncoderFit(
        diagnostics=(
            diagnostic(
                "largest standardized residual of an encoder",
                float(np.abs(standardized).max()) if redundancy else None,
                at_most=MAX_STANDARDIZED_RESIDUAL,
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
        standardized=standardized,
        redundancy=redundancy,
    )


def sensing(model: Model, names: tuple[str, ...]) -> np.ndarray:
    """Return the matrix (n_e, n_v) that maps all velocities to the derivatives of the readings."""
    topology = model.topology
    rows = []
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    for name in names:
        if name in actuators:
            rows.append(model.assembly.loops.transmission[actuators.index(name)])
        else:
            iq = topology.coordinate_names.index(name)
            rows.append(np.array([float(other == iq) for other in topology.q_of_v]))
    return np.array(rows)


def _readings(model: Model, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """Return the readings of the encoders (N, n_e) at coordinates (N, n_q)."""
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    driven = model.actuator_position(q)
    readings = [
        driven[:, actuators.index(name)]
        if name in actuators
        else q[:, model.topology.coordinate_names.index(name)]
        for name in names
    ]
    return np.stack(readings, axis=1)
