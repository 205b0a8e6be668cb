"""Classification of the poses of large maps by machine code, one thread per pose."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import c_function
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.rows import RowKernel, row_kernel_letters, row_kernel_text
from tauloop.compiler.c.printing.source import CFunction, thread_text
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.limits import CONVERGED
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.assembly.limits import STOP_TOLERANCE
from tauloop.equations.values import BatchFunction
from tauloop.geometry.clearance import RodClearance
from tauloop.kinematics.singularities import actuator_map
from tauloop.kinematics.workspaces.pose_axes import PoseAxes
from tauloop.model import Model

_LOGGER = logging.getLogger("tauloop")

#: Number of poses from which the embedded compiler is faster than NumPy. NumPy takes 8 to 860 us
#: per pose. The embedded compiler takes about 50 ms to print the code, and then 4 to 34 us per
#: pose.
MIN_COMPILED_POSES = 2_000
#: Work per pose, as a number of evaluations of the kinematics; it includes singular values and
#: clearances.
EVALUATIONS_PER_POSE = 10
#: Number of poses per call of the code.
AT_ONCE = 262_144
#: Output of the kinematics with the diagnostics of closed forms.
_CLOSED_FORMS = ("discriminants",)
#: Values from which a pose is classified: loop residuals, dimensionless loop Jacobian, coordinates
#: with stops, and ends of rods.
_CRITERIA = ("phi", "K", "limited", "ends")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """Results of the kernel for N poses.

    Attributes:
        measures: distances (N, 3) from serial, parallel and constraint singularities.
        clearance: smallest distance between rods (N,), m.
        side: side of the singularities on which the pose is (N,), see `map.SIDE`.
        reason: `Reason` of each pose (N,).
        blame: index of the element that excludes the pose (N,).
        residual: largest loop residual (N,), m; dimensionless residuals are multiplied by the
            characteristic length.
        q: coordinates (N, n_q).
    """

    measures: np.ndarray
    clearance: np.ndarray
    side: np.ndarray
    reason: np.ndarray
    blame: np.ndarray
    residual: np.ndarray
    q: np.ndarray


class PoseKernel:
    """Classifier of a machine's poses in machine code."""

    def __init__(
        self,
        model: Model,
        axes: PoseAxes,
        clearance: RodClearance,
        stages: int,
        poses: float = math.inf,
    ) -> None:
        """Print the code; it is compiled on first use.

        Args:
            model: the machine.
            axes: axes of the map.
            clearance: distances between the machine's rods.
            stages: number of steps from the reference pose to another pose, for loops that are
                followed.
            poses: total number of poses.
        """
        self._poses = poses
        self._model, self._axes, self._clearance, self._stages = model, axes, clearance, stages
        self._stops = np.flatnonzero(model.limits.is_stop)
        self._moving = [i for i in range(model.topology.n_v) if i not in model.assembly.frozen]

    @cached_property
    def _kernel(self) -> RowKernel | None:
        work = EVALUATIONS_PER_POSE * self._poses
        letters = row_kernel_letters(1, 15)
        try:
            return self._model.evaluator.rows(self.text, "tl_workspace", letters, evaluations=work)
        except EngineError as error:
            _LOGGER.warning("poses are classified by NumPy, up to ten times slower: %s", error)
            return None

    @property
    def is_available(self) -> bool:
        """Whether machine code is available."""
        return self._kernel is not None

    def __call__(
        self,
        values: np.ndarray,
        near: np.ndarray | None,
        least: float,
        clearance: float,
        *,
        ranges: bool,
        parallel: bool,
    ) -> Verdicts:
        """Return the classification of poses.

        Args:
            values: values of the axes (N, n).
            near: coordinates (N, n_q) of nearby poses, from which the loops are solved; None for
                the reference pose.
            least: smallest accepted distance from singularities.
            clearance: smallest accepted distance between rods, m.
            ranges: whether poses beyond stops are excluded.
            parallel: whether `side` includes the sides of parallel singularities.
        """
        assembly, limits, n = self._model.assembly, self._model.limits, len(values)
        runner = self._model.platform.runner
        parameters = [np.ravel(runner.nominal[port.name]) for port in self._parameter_ports]
        driven = actuator_map(self._model)[:, self._moving]
        arrays = (
            np.ascontiguousarray(values.T),
            np.empty((0, n)) if near is None else np.ascontiguousarray(near.T),
            self._axes.reference,
            self._axes.start,
            assembly.q,
            np.concatenate([np.empty(0), *parameters]),
            self._independent_rows.T,
            driven.T,
            driven[list(assembly.leading)].T,
            (limits.lower / limits.scale)[self._stops],
            (limits.upper / limits.scale)[self._stops],
            self._clearance.pairs,
            np.array([least, clearance, ranges, parallel, STOP_TOLERANCE, CONVERGED], dtype=float),
        )
        assert self._kernel is not None
        verdicts, q = self._kernel(
            n, (int(near is not None),), arrays, ((8, n), (self._model.topology.n_q, n))
        )
        return Verdicts(
            measures=verdicts[:3].T,
            clearance=verdicts[3],
            side=verdicts[4],
            reason=verdicts[5].astype(int),
            blame=verdicts[6].astype(int),
            residual=verdicts[7],
            q=q.T,
        )

    @property
    def _independent_rows(self) -> np.ndarray:
        """Return the rows (n, n_v) that select the independent velocities."""
        assembly = self._model.assembly
        return np.asarray(
            np.eye(self._model.topology.n_v)[list(assembly.independent)][:, self._moving]
        )

    @cached_property
    def _function(self) -> CFunction:
        """Return the C function of the kinematics."""
        runner = self._model.platform.runner
        program = runner.program(KINEMATICS[0])
        residuals = tuple(
            step.residual_values for step in program.steps if isinstance(step, Newton)
        )
        criteria = Evaluate(function=self._criteria(), inputs=("q",), outputs=_CRITERIA)
        outputs = ("q", *(_CLOSED_FORMS if program.closed_forms else ()), *residuals, *_CRITERIA)
        whole: Program = replace(
            program, name="pose", steps=(*program.steps, criteria), outputs=outputs
        )
        return c_function(whole, runner.empty_inputs(), outputs)

    @property
    def _parameter_ports(self) -> list[CPort]:
        return [port for port in self._function.inputs if port.name not in ("position", "start")]

    def _criteria(self) -> BatchFunction:
        """Return the function of q with the outputs `_CRITERIA`."""
        assembly, limits, topology = self._model.assembly, self._model.limits, self._model.topology
        loops, q = assembly.loops, ca.SX.sym("q", topology.n_q)
        phi, K = ca.SX(0, 1), ca.SX(0, len(self._moving))
        if loops.names:
            phi, flat = loops.function.function(q)
            phi *= ca.DM(loops.length * loops.row_scale)
            K = ca.reshape(flat, len(loops.names), topology.n_v)
            K = ca.diag(ca.DM(loops.row_scale)) @ K @ ca.diag(ca.DM(loops.velocity_scale))
            if assembly.rows:
                K = K[list(assembly.rows), self._moving]
            else:
                K = ca.SX(0, len(self._moving))
        limited = [q[column] for column in limits.columns]
        if limits.cuts is not None and limits.cuts.function is not None:
            cut = limits.cuts.function.function(q, ca.DM.zeros(topology.n_v))
            limited += ca.vertsplit(cut)[: len(limits.cuts.names)]
        ends = ca.SX(0, 1) if self._clearance.ends is None else self._clearance.ends.function(q)
        bounded = ca.vertcat(ca.SX(0, 1), *(limited[i] / limits.scale[i] for i in self._stops))
        outputs = [phi, ca.reshape(K, -1, 1), bounded, ends]
        return BatchFunction(
            ca.Function("criteria", [q], [ca.densify(output) for output in outputs], {"cse": True})
        )

    @cached_property
    def text(self) -> str:
        """Return the text of the kernel."""
        model, function = self._model, self._function
        assembly = model.assembly
        sizes = {port.name: port.size for port in function.arguments}
        loops = [port.name for port in function.outputs if port.name.endswith("_residuals")]
        defined = {
            "AXES": len(self._axes.columns),
            "POSITIONS": sizes["position"],
            "TURN": -1 if self._axes.quaternion_start is None else self._axes.quaternion_start,
            "Q": sizes["q"],
            "FORMS": sizes.get("discriminants", 0),
            "LEFT": sum(sizes[name] for name in loops),
            "LOOPS": sizes["phi"],
            "ROWS": len(assembly.rows),
            "V": len(self._moving),
            "OWN": len(assembly.independent),
            "DRIVEN": len(model.mechanism.actuators),
            "LEADING": len(assembly.leading),
            "PASSIVE": len(assembly.passive),
            "STOPS": len(self._stops),
            "RODS": sizes["ends"] // 6,
            "PAIRS": len(self._clearance.pairs),
            "STAGES": self._stages,
        }
        argument_of = {"position": "position", "start": "start", "q": "pose->q", "health": "health"}
        argument_of |= {name: f"pose->{name}" for name in _CRITERIA} | {
            "discriminants": "pose->forms"
        }
        first = 0
        for name in loops:
            argument_of[name] = f"pose->left + {first}"
            first += sizes[name]
        first = 0
        for port in self._parameter_ports:
            argument_of[port.name] = f"held + {first}"
            first += port.size
        arguments = ", ".join(["1", *(argument_of[port.name] for port in function.arguments)])
        body = [
            *(f"#define TL_{name} {size}" for name, size in defined.items()),
            c_file("tauloop.kinematics.workspaces", "workspace.c"),
            thread_text(function, frozenset()),
            "static void tl_closed(const double *position, const double *start, const double *held, tl_pose *pose)",
            "{",
            "    double health[4];",
            "    (void)position, (void)start, (void)held;",
            f"    {function.name}_thread({arguments});",
            "}",
            "",
        ]
        return row_kernel_text("\n".join(body))
