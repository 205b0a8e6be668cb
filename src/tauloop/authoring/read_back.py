"""Round-trip check: compare a written machine with the machine read back, at random states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.authoring.same_motion import (
    SameColumns,
    SameCoordinates,
    same_columns,
    same_coordinates,
)
from tauloop.common.errors import TauloopError
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.model.motion import Motion

#: Largest difference of forces, motor speeds and tool poses that counts as rounding. Forces and
#: speeds are relative to the largest value, positions to the characteristic length.
ROUND_TRIP_TOLERANCE = 1e-9
#: Velocity scales of the compared states; they cover both Stribeck and viscous friction.
VELOCITY_SCALES = np.array([1.0, 0.1, 0.01, 0.001])
#: Number of compared states.
READ_BACK_STATES = len(VELOCITY_SCALES)
#: Distances of the compared states from the reference pose, rad or characteristic lengths. If a
#: state is out of reach, the next smaller distance is used for all states.
DISTANCES = (0.02, 0.002, 0.0)


def read_back_diagnostics(
    before: Mechanism, after: Mechanism, names: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the largest differences between a machine and the machine read back.

    Three quantities are compared at random states: the forces on the independent coordinates
    (M a + h, with friction and springs), the motor speeds (actuator Jacobian times velocities), and
    the pose of the tool. If a comparison is impossible, the diagnostic states the reason.

    Args:
        before: the written machine.
        after: the machine read back.
        names: mapping from names of the machine to names in the file, where they differ.
    """
    locked = _differences(before, after, names, Locks())
    if all(item.is_good for item in locked):
        return locked
    # compare without locks: the axis of a locked spin follows from sampled poses, which may differ
    free = _differences(before, after, names, Locks(spins=False))
    is_same = all(item.value is not None and item.is_good for item in free)
    return free if is_same else locked


def _differences(
    before: Mechanism, after: Mechanism, names: Mapping[str, str], locks: Locks
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the largest differences between two machines with these locks."""
    try:
        first_model = Model(before, locks=locks)
        is_equal = replace(after, file=before.file) == before
        second_model = first_model if is_equal else Model(after, locks=locks)
        models = first_model, second_model
    except TauloopError as error:
        return (_not_compared(f"{error.problems[0].where}: {error.problems[0].what}"),)
    reason = "the two machines have different independent coordinates"
    for entry in (PLATFORM, ACTUATORS):
        try:
            first, second = (
                model.platform if entry == PLATFORM else model.actuators for model in models
            )
            conversion = same_columns((first, second), names)
            if conversion is not None:
                return _compared(_Pair(models, (first, second), conversion, names))
        except TauloopError as error:
            reason = f"{error.problems[0].where}: {error.problems[0].what}"
    try:
        motions = models[0].platform, models[1].platform
        relation = same_coordinates(models, motions, names)
        if relation is not None:
            return _compared(_Pair(models, motions, relation, names))
    except TauloopError as error:
        reason = f"{error.problems[0].where}: {error.problems[0].what}"
    return (_not_compared(reason),)


def _not_compared(reason: str) -> Diagnostic:
    return diagnostic(f"forces after reading back (not compared: {reason})", None)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A machine and its copy, with the motions for the comparison."""

    models: tuple[Model, Model]
    motions: tuple[Motion, Motion]
    conversion: SameColumns | SameCoordinates
    renamed: Mapping[str, str]

    def outputs(
        self, x: np.ndarray, v: np.ndarray, a: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return pairs of outputs (N, n) of both machines.

        The pairs are torques, forces, motor speeds and poses of the tool, in this order. Torques
        act on rotational coordinates, forces on lengths.

        Args:
            x, v, a: the motion of the copy (N, n); forces are those on its velocities.
        """
        length = self.models[0].mechanism.characteristic_length
        original = self.conversion.motion(x, v, a)
        first = _outputs(
            self.motions[0],
            self.models[0],
            length,
            original.position,
            original.velocity,
            original.acceleration,
        )
        expected = np.einsum("kij,ki->kj", original.rates, first[0])
        forces, speeds, tool_pose = _outputs(self.motions[1], self.models[1], length, x, v, a)
        motors = [actuator.name for actuator in self.models[1].mechanism.actuators]
        order = [
            motors.index(self.renamed.get(actuator.name, actuator.name))
            for actuator in self.models[0].mechanism.actuators
        ]
        units = self.motions[1].ports.velocity.units
        is_angular = np.array([unit.startswith("rad") for unit in units])
        return [
            (expected[:, is_angular], forces[:, is_angular]),
            (expected[:, ~is_angular], forces[:, ~is_angular]),
            (first[1], speeds[:, order]),
            (first[2], tool_pose),
        ]


def _compared(pair: _Pair) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the largest differences between the outputs of a pair."""
    ports, model = pair.motions[1].ports, pair.models[1]
    rng = np.random.default_rng(0)
    length = pair.models[0].mechanism.characteristic_length
    reference = ports.at(model.assembly.q)
    columns = zip(ports.position.columns, ports.position.units, strict=True)
    # only scalar coordinates are varied, not quaternions
    scales = [
        (length if unit == "m" else 1.0) * (name in ports.velocity.columns)
        for name, unit in columns
    ]
    steps = rng.uniform(-1.0, 1.0, size=(READ_BACK_STATES, len(reference))) * scales
    units = ports.velocity.units
    rates = np.array([1.0 if unit.startswith("rad") else length for unit in units])
    v, a = rng.uniform(-1.0, 1.0, size=(2, READ_BACK_STATES, len(units))) * rates
    v *= VELOCITY_SCALES[:, None]
    outputs: list[tuple[np.ndarray, np.ndarray]] = []
    for distance in DISTANCES:
        try:
            outputs = pair.outputs(reference + distance * steps, v, a)
            break
        except TauloopError:
            if distance == DISTANCES[-1]:
                raise
    *forces, tool_poses = outputs
    advice = (
        "see the notes on the limits of the format; `--format yaml` preserves the whole machine"
    )
    return (
        diagnostic(
            "largest difference of forces after reading back, relative to the largest force",
            max((_relative(*numbers) for numbers in forces if numbers[0].size), default=0.0),
            at_most=ROUND_TRIP_TOLERANCE,
            advice=advice,
        ),
        diagnostic(
            "largest difference of the tool's pose after reading back, relative to characteristic length",
            np.abs(tool_poses[1] - tool_poses[0]).max(),
            at_most=ROUND_TRIP_TOLERANCE,
            advice=advice,
        ),
    )


def _outputs(
    motion: Motion, model: Model, length: float, x: np.ndarray, v: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return generalized forces (N, n), motor speeds (N, n_u) and tool poses (N, 12)."""
    forces = np.einsum("kij,kj->ki", motion.mass_matrix(x), a) + motion.bias(x, v)
    speeds = np.zeros((len(x), 0))
    if model.mechanism.actuators:
        speeds = np.einsum("kij,kj->ki", motion.actuator_jacobian(x), v)
    tool = motion.tool(x)
    return (
        forces,
        speeds,
        np.concatenate([tool.place / length, tool.rotation.reshape(len(x), 9)], axis=1),
    )


def _relative(expected: np.ndarray, actual: np.ndarray) -> float:
    """Return the largest difference relative to the largest magnitude."""
    largest = float(np.abs(expected).max())
    difference = float(np.abs(actual - expected).max())
    return difference / largest if largest > 0.0 else difference
