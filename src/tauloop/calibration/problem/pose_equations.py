"""The equations of a pose as CasADi functions: loops, encoders, and the errors of one instrument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.assembly.assembly import Assembly
from tauloop.assembly.loops import closure, nominal, stacked
from tauloop.calibration.measurements.instruments import ORIGIN, Instrument, Nuisance, Scene
from tauloop.calibration.problem.unknowns import Unknown
from tauloop.codegen.evaluator import Evaluator, Kernel, c_function
from tauloop.equations.newton_euler import transmission
from tauloop.equations.topology import Topology
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction, Values
from tauloop.programs.program import Evaluate, Program
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What all series of a problem share: the machine, the unknowns, nuisances, and how functions run."""

    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    nuisances: tuple[Nuisance, ...]
    evaluator: Evaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicPose:
    """A pose with symbols: coordinates q, velocities v, corrections x of the unknowns, and the machine seen there.

    Attributes:
        q, v, x: symbols.
        scene: bodies and nuisance parameters at them.
    """

    q: ca.SX
    v: ca.SX
    x: ca.SX
    scene: Scene

    def rates(self, f: ca.SX) -> ca.SX:
        """Derivatives of f in the velocities."""
        return ca.jacobian(f, self.q) @ _coordinate_rates(self.scene.topology, self.q)


def symbolic_pose(reach: Reach, instrument: Instrument) -> SymbolicPose:
    """A pose of the machine as an instrument sees it; instruments without a target look at the tool centre point."""
    mechanism, shape = reach.assembly.mechanism, reach.assembly.topology
    x = ca.SX.sym("x", len(reach.unknowns))
    target = zip("xyz", ORIGIN, strict=True)
    nuisances: dict[str, Any] = {f"{instrument.name}.target.{letter}": value for letter, value in target}
    nuisances |= {nuisance.name: nuisance.value for nuisance in reach.nuisances}
    leaves: dict[str, Any] = {}
    for i, unknown in enumerate(reach.unknowns):
        for member in unknown.members:
            if member in nuisances:
                nuisances[member] = nuisances[member] + x[i]
            else:
                leaves[member] = mechanism.parameters[member].value + x[i]
    values: Values = nominal(mechanism, leaves)
    motion = symbolic_motion(shape, values)
    scene = Scene(mechanism=mechanism, topology=shape, values=values, motion=motion, nuisances=nuisances)
    return SymbolicPose(q=motion.q, v=motion.v, x=x, scene=scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class StationFunctions:
    """The functions of one instrument at the poses of a machine.

    Attributes:
        equations: (q, x, p, y) -> all equations and their derivatives in the velocities.
        sensitivity: (q, x, p, y) -> derivatives of all equations in the unknowns.
        target: (q, x) -> point (3,) in the base frame that the instrument looks at, m.
        sizes: numbers of (loops, leading encoders, errors, spare encoders).
    """

    equations: PoseFunction
    sensitivity: PoseFunction
    target: PoseFunction
    sizes: tuple[int, int, int, int]


class PoseFunction:
    """A function of columns on batches, interpreted or as machine code, as an evaluator decides."""

    def __init__(self, function: ca.Function, evaluator: Evaluator, samples: int) -> None:
        """Keep the function; compile it where that is wanted for so many samples and can be done."""
        self._interpreted = BatchFunction(function)
        self._inputs = tuple(function.name_in())
        self._outputs = tuple(function.name_out())
        self._kernel: Kernel | None = None
        step = Evaluate(function=self._interpreted, inputs=self._inputs, outputs=self._outputs)
        program = Program(name=function.name(), steps=(step,), outputs=self._outputs, closed_forms=(), pivots=())
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
    """All equations of a pose with their derivatives, ready for numbers."""
    assembly = reach.assembly
    mechanism, shape = assembly.mechanism, assembly.topology
    pose = symbolic_pose(reach, instrument)
    q, x, scene = pose.q, pose.x, pose.scene
    p = ca.SX.sym("p", len(mechanism.actuators))
    y = ca.SX.sym("y", len(instrument.columns))
    rows = closure(mechanism, scene.motion)
    phi, _, _ = stacked(tuple(rows[i] for i in independent_rows(assembly)))
    A = transmission(mechanism, shape, scene.values)
    scalars = ca.vertcat(*(q[j] if j >= 0 else 0 for j in shape.q_of_v))
    motors = [actuator.name for actuator in mechanism.actuators]
    scale, offset = (
        ca.vertcat(*(scene.nuisances[f"encoder.{name}.{what}"] for name in motors)) for what in ("scale", "offset")
    )
    encoders = A @ scalars - (scale * p + offset)
    leading, spare = list(assembly.leading), list(assembly.spare)
    error = instrument.error(scene, y)
    f = ca.densify(ca.vertcat(phi, encoders[leading], error, encoders[spare]))
    f_x = ca.jacobian(f, x)
    inputs, names = [q, x, p, y], ["q", "x", "p", "y"]
    made = (
        ca.Function("equations", inputs, [f, ca.densify(ca.vec(pose.rates(f)))], names, ["f", "f_v"]),
        ca.Function("sensitivity", inputs, [ca.densify(ca.vec(f_x))], names, ["f_x"]),
        ca.Function("target", [q, x], [ca.densify(scene.target(instrument.name))], ["q", "x"], ["target"]),
    )
    equations, sensitivity, target = (PoseFunction(function, reach.evaluator, samples) for function in made)
    return StationFunctions(
        equations=equations,
        sensitivity=sensitivity,
        target=target,
        sizes=(phi.numel(), len(leading), error.numel(), len(spare)),
    )


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


def _coordinate_rates(shape: Topology, q: ca.SX) -> ca.SX:
    """N (n_q, n_v) with dq/dt = N v; a quaternion turns by half its product with the angular velocity."""
    N = ca.SX(shape.n_q, shape.n_v)
    for i, j in enumerate(shape.q_of_v):
        if j >= 0:
            N[j, i] = 1
    for iq, iv in shape.quaternions:
        w, x, y, z = (q[iq + k] for k in range(4))
        N[iq : iq + 4, iv : iv + 3] = 0.5 * ca.vertcat(
            ca.horzcat(-x, -y, -z), ca.horzcat(w, z, -y), ca.horzcat(-z, w, x), ca.horzcat(y, -x, w)
        )
    return N
