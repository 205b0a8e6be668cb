"""The equations of a pose as CasADi functions: loops, encoders, and the errors of one instrument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.calibration.measurements.instruments import ORIGIN, Instrument, Nuisance, Scene
from tauloop.calibration.problem.equilibrium import (
    Equilibrium,
    cable_tensions,
    equilibrium_equations,
)
from tauloop.calibration.problem.unknowns import Unknown
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Evaluator, Kernel, c_function
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import closure, nominal, stacked
from tauloop.equations.newton_euler import transmission
from tauloop.equations.tree import coordinate_rates, symbolic_motion
from tauloop.equations.values import BatchFunction, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What all series of a problem share: the machine, the unknowns, nuisances, and how functions run.

    Attributes:
        assembly, unknowns, nuisances: of the problem.
        evaluator: how functions run.
        equilibrium: equations by which the machine hangs still; None where it need not.
    """

    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    nuisances: tuple[Nuisance, ...]
    evaluator: Evaluator
    equilibrium: Equilibrium | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicPose:
    """A pose with symbols: coordinates q, corrections x of the unknowns, and the machine seen there.

    Attributes:
        q, x: symbols.
        scene: bodies and nuisance parameters at them.
    """

    q: ca.SX
    x: ca.SX
    scene: Scene

    def rates(self, f: ca.SX) -> ca.SX:
        """Derivatives of f in the velocities."""
        return ca.jacobian(f, self.q) @ coordinate_rates(self.scene.topology, self.q)


def symbolic_pose(reach: Reach, instrument: Instrument, x: ca.SX | None = None) -> SymbolicPose:
    """A pose of the machine as an instrument sees it; instruments without a target look at the tool centre point.

    Args:
        reach: the machine and the unknowns.
        instrument: what looks.
        x: symbols of the corrections, shared with other poses; new ones without it.
    """
    mechanism, shape = reach.assembly.mechanism, reach.assembly.topology
    x = ca.SX.sym("x", len(reach.unknowns)) if x is None else x
    target = zip("xyz", ORIGIN, strict=True)
    nuisances: dict[str, Any] = {
        f"{instrument.name}.target.{letter}": value for letter, value in target
    }
    nuisances |= {nuisance.name: nuisance.value for nuisance in reach.nuisances}
    leaves: dict[str, Any] = {}
    for i, unknown in enumerate(reach.unknowns):
        for member in unknown.members:
            if member in nuisances:
                nuisances[member] = nuisances[member] + x[i]
            else:
                leaves[member] = mechanism.parameters[member].value + x[i]
    values: Values = nominal(mechanism, leaves)
    motion = symbolic_motion(shape, values, is_moving=False)
    scene = Scene(
        mechanism=mechanism, topology=shape, values=values, motion=motion, nuisances=nuisances
    )
    return SymbolicPose(q=motion.q, x=x, scene=scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class StationFunctions:
    """The functions of one instrument at the poses of a machine.

    Attributes:
        equations: (q, x, p, y) -> all equations and their derivatives in the velocities.
        sensitivity: (q, x, p, y) -> derivatives of all equations in the unknowns.
        target: (q, x) -> point (3,) in the base frame that the instrument looks at, m.
        sizes: numbers of (loops, leading encoders, errors, spare encoders); equations of
            equilibrium count as loops.
        cables: names of the cables that hold a machine at equilibrium.
        tensions: (q, x) -> their tensions, N; None without any.
    """

    equations: PoseFunction
    sensitivity: PoseFunction
    target: PoseFunction
    sizes: tuple[int, int, int, int]
    cables: tuple[str, ...] = ()
    tensions: PoseFunction | None = None


class PoseFunction:
    """A function of columns on batches, interpreted or as machine code, as an evaluator decides."""

    def __init__(self, function: ca.Function, evaluator: Evaluator, samples: int) -> None:
        """Keep the function; compile it where that is wanted for so many samples and can be done."""
        self._interpreted = BatchFunction(function)
        self._inputs = tuple(function.name_in())
        self._outputs = tuple(function.name_out())
        self._kernel: Kernel | None = None
        step = Evaluate(function=self._interpreted, inputs=self._inputs, outputs=self._outputs)
        program = Program(
            name=function.name(), steps=(step,), outputs=self._outputs, closed_forms=(), pivots=()
        )
        if evaluator.wants_code(program, samples):
            sizes = {name: np.zeros((1, function.numel_in(name))) for name in self._inputs}
            self._kernel = evaluator.kernel(c_function(program, sizes))

    def __call__(self, arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
        """Values at n samples: one array (n, k) per input, one per output."""
        if self._kernel is None:
            return self._interpreted(arrays, n)
        outputs, _ = self._kernel.run(dict(zip(self._inputs, arrays, strict=True)), n)
        return [outputs[name] for name in self._outputs]


def station_functions(reach: Reach, instrument: Instrument, samples: int) -> StationFunctions:
    """All equations of a reading with their derivatives, ready for numbers: loops and encoders of all its poses."""
    assembly = reach.assembly
    first = symbolic_pose(reach, instrument)
    poses = [
        first,
        *(symbolic_pose(reach, instrument, first.x) for _ in range(instrument.poses - 1)),
    ]
    x = first.x
    q = ca.vertcat(*(pose.q for pose in poses))
    p = ca.SX.sym("p", len(assembly.mechanism.actuators), len(poses))
    y = ca.SX.sym("y", len(instrument.columns))
    rows = independent_rows(assembly)
    closings = [_closing(reach, pose.scene, rows) for pose in poses]
    phi = ca.vertcat(*closings)
    misfits = [
        _encoder_misfits(assembly, pose.scene, pose.q, p[:, k]) for k, pose in enumerate(poses)
    ]
    leading = ca.vertcat(*(misfit[list(assembly.leading)] for misfit in misfits))
    spare = ca.vertcat(*(misfit[list(assembly.spare)] for misfit in misfits))
    error = instrument.error(
        replace(first.scene, others=tuple(pose.scene for pose in poses[1:])), y
    )
    f = ca.densify(ca.vertcat(phi, leading, error, spare))
    f_v = ca.horzcat(*(pose.rates(f) for pose in poses))
    f_x = ca.jacobian(f, x)
    inputs, names = [q, x, ca.vec(p), y], ["q", "x", "p", "y"]
    place = ca.densify(first.scene.target(instrument.name))
    made = (
        ca.Function("equations", inputs, [f, ca.densify(ca.vec(f_v))], names, ["f", "f_v"]),
        ca.Function("sensitivity", inputs, [ca.densify(ca.vec(f_x))], names, ["f_x"]),
        ca.Function("target", [first.q, x], [place], ["q", "x"], ["target"]),
    )
    equations, sensitivity, target = (
        PoseFunction(function, reach.evaluator, samples) for function in made
    )
    cables: tuple[str, ...] = ()
    tensions = None
    if reach.equilibrium is not None:
        cables, pull = cable_tensions(assembly, first.scene.motion, rows)
        function = ca.Function("tensions", [first.q, x], [pull], ["q", "x"], ["tensions"])
        tensions = PoseFunction(function, reach.evaluator, samples) if cables else None
    return StationFunctions(
        cables=cables,
        tensions=tensions,
        equations=equations,
        sensitivity=sensitivity,
        target=target,
        sizes=(phi.numel(), leading.numel(), error.numel(), spare.numel()),
    )


def _closing(reach: Reach, scene: Scene, rows: Sequence[int]) -> ca.SX:
    """Some of the loop equations at a pose, and those of equilibrium where there are any."""
    equations = closure(reach.assembly.mechanism, scene.motion)
    phi, _, _ = stacked(tuple(equations[i] for i in rows))
    if reach.equilibrium is None:
        return phi
    return ca.vertcat(
        phi, equilibrium_equations(reach.assembly, scene.motion, rows, reach.equilibrium)
    )


def _encoder_misfits(assembly: Assembly, scene: Scene, q: ca.SX, p: ca.SX) -> ca.SX:
    """Positions of all actuators (n_u,) at coordinates q less those that the encoders read."""
    mechanism, shape = assembly.mechanism, assembly.topology
    A = transmission(mechanism, shape, scene.values)
    scalars = ca.vertcat(*(q[j] if j >= 0 else 0 for j in shape.q_of_v))
    motors = [actuator.name for actuator in mechanism.actuators]
    scale = ca.vertcat(*(scene.nuisances[f"encoder.{name}.scale"] for name in motors))
    offset = ca.vertcat(*(scene.nuisances[f"encoder.{name}.offset"] for name in motors))
    return A @ scalars - (scale * p + offset)


def independent_rows(assembly: Assembly) -> tuple[int, ...]:
    """Loop equations that are independent in *all* coordinates: those frozen in the nominal machine may move here."""
    loops = assembly.loops
    count = len(loops.names)
    if assembly.rank == count:
        return tuple(range(count))
    _, K = loops.residuals(assembly.states)
    columns = np.concatenate(list(loops.scaled(K).transpose(0, 2, 1)))
    _, pivots = scipy.linalg.qr(columns, mode="r", pivoting=True)
    return tuple(sorted(int(i) for i in pivots[: assembly.rank]))
