"""The equations of a pose as CasADi functions: loops, encoders, and errors of one instrument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.calibration.measurements.instruments import ORIGIN, Instrument, Nuisance, Scene
from tauloop.calibration.problem.deflection import Deflection
from tauloop.calibration.problem.equilibrium import (
    Equilibrium,
    cable_tensions,
    equilibrium_equations,
)
from tauloop.calibration.problem.unknowns import Unknown
from tauloop.common.names.deprecated import old_name
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Evaluator, Kernel, c_function
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import closure, nominal, stacked
from tauloop.equations.newton_euler import actuator_offsets, transmission
from tauloop.equations.tree import coordinate_rates, symbolic_motion
from tauloop.equations.values import BatchFunction, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationContext:
    """The machine, the unknowns and the evaluator that all series of a problem share.

    Attributes:
        assembly: how the loops of the machine close.
        unknowns: parameters that are estimated.
        nuisances: nuisance parameters of instruments and encoders.
        evaluator: how functions are evaluated: interpreted or compiled.
        equilibrium: static equilibrium equations of every pose; None if the machine does not hang
            freely.
        deflection: displacement of the tool due to loads and temperatures; None for a rigid
            machine.
    """

    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    nuisances: tuple[Nuisance, ...]
    evaluator: Evaluator
    equilibrium: Equilibrium | None = None
    deflection: Deflection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicPose:
    """A pose in symbols.

    Attributes:
        q: coordinates.
        x: corrections of the unknowns.
        scene: bodies and nuisance parameters as expressions of q and x.
    """

    q: ca.SX
    x: ca.SX
    scene: Scene

    def rates(self, f: ca.SX) -> ca.SX:
        """Return the derivatives of f with respect to the velocities."""
        return ca.jacobian(f, self.q) @ coordinate_rates(self.scene.topology, self.q)


def symbolic_pose(
    context: CalibrationContext,
    instrument: Instrument,
    x: ca.SX | None = None,
    twist: ca.SX | None = None,
) -> SymbolicPose:
    """Return a pose of the machine as an instrument measures it.

    Instruments without a target measure the tool center point.

    Args:
        context: the machine and the unknowns.
        instrument: instrument that measures the pose.
        x: symbols of the corrections, shared with other poses; None for new symbols.
        twist: symbols (6,) of the tool's deflection; None for a rigid machine.
    """
    mechanism = context.assembly.mechanism
    topology = context.assembly.topology
    x = ca.SX.sym("x", len(context.unknowns)) if x is None else x
    target = zip("xyz", ORIGIN, strict=True)
    nuisances: dict[str, Any] = {
        f"{instrument.name}.target.{letter}": value for letter, value in target
    }
    nuisances |= {nuisance.name: nuisance.value for nuisance in context.nuisances}
    leaves: dict[str, Any] = {}
    for i, unknown in enumerate(context.unknowns):
        for member in unknown.members:
            if member in nuisances:
                nuisances[member] = nuisances[member] + x[i]
            else:
                leaves[member] = mechanism.parameters[member].value + x[i]
    values: Values = nominal(mechanism, leaves)
    motion = symbolic_motion(topology, values, is_moving=False)
    scene = Scene(
        mechanism=mechanism,
        topology=topology,
        values=values,
        motion=motion,
        nuisances=nuisances,
        twist=twist,
    )
    return SymbolicPose(q=motion.q, x=x, scene=scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoseFunctions:
    """The functions of one instrument at the poses of a machine.

    Attributes:
        equations: (q, x, p, y, d) -> all equations and their velocity derivatives. q are
            coordinates, x corrections of the unknowns, p encoder readings, y instrument readings
            and d deflections of the tool (omitted for a rigid machine).
        sensitivity: (q, x, p, y, d) -> derivatives of all equations with respect to the unknowns.
        target: (q, x) -> point (3,) in the base frame that the instrument measures, m.
        sizes: numbers of (loops, leading encoders, errors, redundant encoders); equations of
            equilibrium count as loops.
        cables: names of the cables that hold a machine at equilibrium.
        tensions: (q, x) -> tensions of these cables, N; None if there are no cables.
        by_twist: (q, x, p, y, d) -> derivatives of all equations with respect to the deflections;
            None for a rigid machine.
    """

    equations: PoseFunction
    sensitivity: PoseFunction
    target: PoseFunction
    sizes: tuple[int, int, int, int]
    cables: tuple[str, ...] = ()
    tensions: PoseFunction | None = None
    by_twist: PoseFunction | None = None


class PoseFunction:
    """A function for batches of samples; the evaluator decides whether it is compiled."""

    def __init__(self, function: ca.Function, evaluator: Evaluator, samples: int) -> None:
        """Store the function; compile it if the evaluator chooses to for this number of samples."""
        self._arguments = function, evaluator, samples
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
            self._kernel = evaluator.kernel(c_function(program, sizes), samples)

    def __reduce__(self) -> tuple[type[PoseFunction], tuple[ca.Function, Evaluator, int]]:
        """Pickle without machine code, which another process builds again."""
        return PoseFunction, self._arguments

    def __call__(self, arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
        """Return the outputs at n samples, with one array (n, k) per input and per output."""
        if self._kernel is None:
            return self._interpreted(arrays, n)
        outputs, _ = self._kernel.run(dict(zip(self._inputs, arrays, strict=True)), n)
        return [outputs[name] for name in self._outputs]


def measured_pose_functions(
    context: CalibrationContext, instrument: Instrument, samples: int
) -> MeasuredPoseFunctions:
    """Return functions for all equations of a reading: loops and encoders of its poses, and errors.

    Args:
        context: the machine and the unknowns.
        instrument: instrument that measures the pose.
        samples: number of readings, which decides whether compiling pays off.
    """
    assembly = context.assembly
    x = ca.SX.sym("x", len(context.unknowns))
    is_deflected = context.deflection is not None
    d = ca.SX.sym("d", 6 * instrument.poses if is_deflected else 0)
    twists = ca.vertsplit(d, 6) if is_deflected else [None] * instrument.poses
    poses = [symbolic_pose(context, instrument, x, twist) for twist in twists]
    first = poses[0]
    q = ca.vertcat(*(pose.q for pose in poses))
    p = ca.SX.sym("p", len(assembly.mechanism.actuators), len(poses))
    y = ca.SX.sym("y", len(instrument.columns))
    rows = independent_rows(assembly)
    phi = ca.vertcat(*(_closure_equations(context, pose.scene, rows) for pose in poses))
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
    inputs = [q, x, ca.vec(p), y]
    names = ["q", "x", "p", "y"]
    if is_deflected:
        inputs.append(d)
        names.append("d")
    rigid_target = ca.densify(replace(first.scene, twist=None).target(instrument.name))
    f_and_f_v = [f, ca.densify(ca.vec(f_v))]
    function = ca.Function("equations", inputs, f_and_f_v, names, ["f", "f_v"])
    equations = PoseFunction(function, context.evaluator, samples)
    function = ca.Function("sensitivity", inputs, [ca.densify(ca.vec(f_x))], names, ["f_x"])
    sensitivity = PoseFunction(function, context.evaluator, samples)
    function = ca.Function("target", [first.q, x], [rigid_target], ["q", "x"], ["target"])
    target = PoseFunction(function, context.evaluator, samples)
    by_twist = None
    if is_deflected:
        f_d = ca.densify(ca.vec(ca.jacobian(f, d)))
        function = ca.Function("by_twist", inputs, [f_d], names, ["f_d"])
        by_twist = PoseFunction(function, context.evaluator, samples)
    cables: tuple[str, ...] = ()
    tensions = None
    if context.equilibrium is not None:
        cables, tension_expressions = cable_tensions(assembly, first.scene.motion, rows)
        function = ca.Function(
            "tensions", [first.q, x], [tension_expressions], ["q", "x"], ["tensions"]
        )
        tensions = PoseFunction(function, context.evaluator, samples) if cables else None
    return MeasuredPoseFunctions(
        cables=cables,
        tensions=tensions,
        by_twist=by_twist,
        equations=equations,
        sensitivity=sensitivity,
        target=target,
        sizes=(phi.numel(), leading.numel(), error.numel(), spare.numel()),
    )


def _closure_equations(context: CalibrationContext, scene: Scene, rows: Sequence[int]) -> ca.SX:
    """Return some loop equations at a pose, then the equations of equilibrium if there are any."""
    equations = closure(context.assembly.mechanism, scene.motion)
    phi, _, _ = stacked(tuple(equations[i] for i in rows))
    if context.equilibrium is None:
        return phi
    return ca.vertcat(
        phi, equilibrium_equations(context.assembly, scene.motion, rows, context.equilibrium)
    )


def _encoder_misfits(assembly: Assembly, scene: Scene, q: ca.SX, p: ca.SX) -> ca.SX:
    """Return actuator positions (n_u,) at coordinates q minus the positions from the encoders."""
    mechanism = assembly.mechanism
    topology = assembly.topology
    A = transmission(mechanism, topology, scene.values)
    scalars = ca.vertcat(*(q[j] if j >= 0 else 0 for j in topology.q_of_v))
    motors = [actuator.name for actuator in mechanism.actuators]
    scale = ca.vertcat(*(scene.nuisances[f"encoder.{name}.scale"] for name in motors))
    offset = ca.vertcat(*(scene.nuisances[f"encoder.{name}.offset"] for name in motors))
    return A @ scalars + actuator_offsets(mechanism, scene.values) - (scale * p + offset)


def independent_rows(assembly: Assembly) -> tuple[int, ...]:
    """Return the indices of loop equations that are independent in *all* coordinates.

    Coordinates that are frozen in the nominal machine may move when its geometry is corrected.
    """
    loops = assembly.loops
    count = len(loops.names)
    if assembly.rank == count:
        return tuple(range(count))
    _, K = loops.residuals(assembly.states)
    columns = np.concatenate(list(loops.scaled(K).transpose(0, 2, 1)))
    _, pivots = scipy.linalg.qr(columns, mode="r", pivoting=True)
    return tuple(sorted(int(i) for i in pivots[: assembly.rank]))


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
