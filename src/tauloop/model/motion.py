"""Functions of a motion that is given in platform or in actuator coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.names.deprecated import old_attribute, with_old_keywords
from tauloop.common.names.lazy import lazy_functions
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.catalogue import (
    EMBEDDING,
    ENERGIES,
    FILE_OUTPUTS,
    FORWARD_DYNAMICS,
    INVERSE_DYNAMICS,
    JACOBIANS,
    LOADED_FORWARD_DYNAMICS,
    LOADED_INVERSE_DYNAMICS,
    REGRESSORS,
    TERMS,
    TOOL,
    program_named,
)
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.functions.tool import WRENCH
from tauloop.compiler.program import Program
from tauloop.compiler.solving.closed_forms import Branches
from tauloop.compiler.solving.position import SolvedBlock
from tauloop.compiler.state import Forces, SolveDiagnostics, State
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    EntryPorts,
    assembled_poses,
    full_coordinates,
    require_type,
    text_names,
)
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.forces.force_sharing import EQUAL_SHARES, ForceSharing
from tauloop.model.forces.tension_terms import NO_WRENCH
from tauloop.model.runner import Runner
from tauloop.model.tool import Payload, ToolMotion, loads

if TYPE_CHECKING:
    import casadi as ca

    from tauloop.model.derivatives import Derivatives, arranged, differentiated
    from tauloop.model.forces.tension_terms import TensionTerms, loaded_margin, tension_terms
    from tauloop.model.positions.following import follow, track, with_continuous_angles
    from tauloop.model.products import Products, arranged_products, multiplied
else:
    loaded_margin, tension_terms = lazy_functions(
        "tauloop.model.forces.tension_terms", "loaded_margin", "tension_terms"
    )
    arranged, differentiated = lazy_functions(
        "tauloop.model.derivatives", "arranged", "differentiated"
    )
    arranged_products, multiplied = lazy_functions(
        "tauloop.model.products", "arranged_products", "multiplied"
    )
    follow, track, with_continuous_angles = lazy_functions(
        "tauloop.model.positions.following", "follow", "track", "with_continuous_angles"
    )

#: Kinds of rows of a regressor.
OUTPUTS = tuple(REGRESSORS)


@final
class Motion:
    """Functions of the motion of the platform or of the actuators of one machine.

    Attributes:
        runner: builds and runs the programs.
        ports: ports of the given motion.
        assembly: the machine.
    """

    counted = old_attribute("counted", "with_continuous_angles")

    def __init__(self, runner: Runner) -> None:
        """Store the runner; programs are built on first use."""
        self.runner = runner
        self.ports: EntryPorts = runner.ports
        self.assembly: Assembly = runner.assembly

    def kinematics(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        theta: object | None = None,
    ) -> State:
        """Return all coordinates, and velocities and accelerations if they are given.

        Args:
            position: given positions (N, n) or (n,); columns as in `ports`.
            velocity: given velocities, or None for positions only.
            acceleration: given accelerations, or None.
            start: start values (N, n_q) or (n_q,) for Newton blocks; by default the reference pose.
            theta: free parameters (N, n_free) or (n_free,); by default the nominal values.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; the message states the loop and its gap.
        """
        return self.runner.kinematics(_given_motion(position, velocity, acceleration), start, theta)

    def evaluate(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
    ) -> State:
        """Return the same as `kinematics` without errors for failed samples; see `State.health`."""
        return self.runner.reached(_given_motion(position, velocity, acceleration), start)

    def follow(self, position: object, start: object | None = None) -> State:
        """Return all coordinates by continuation from a pose; see `Model.forward_kinematics`."""
        return follow(self.runner, position, start)

    def track(self, position: object, start: object | None = None) -> State:
        """Return all coordinates of consecutive samples, each followed from the samples before it.

        `follow` computes the first sample, and machine code the others. Without a compiler,
        `follow` computes all samples. Long motions are divided into segments that run in parallel
        vector lanes, and `follow` computes the first sample of each. If the ends of segments do not
        match, all samples are followed one by one. Angles continue without jumps from the
        revolution of the first sample.

        Args:
            position: given positions (N, n) in the order of time.
            start: assembled coordinates (n_q,); the default is the reference pose.

        Raises:
            PoseError: out of reach; the message states the loop and its gap.
            AssemblyError: the motion jumps because it has left its assembly mode.
        """
        return track(self.runner, position, start)

    def with_continuous_angles(self, state: State) -> State:
        """Return samples that were solved independently, with angles continued without jumps.

        Args:
            state: samples in the order of time, such as a result of `kinematics`.

        Raises:
            InputError: not a state of this machine.
        """
        require_type(state, State, "state", "give the result of `kinematics` or `evaluate`")
        full_coordinates(state.q, self.assembly.topology, "state.q")
        return with_continuous_angles(self.runner, state)

    def outputs(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return the outputs of the machine file (N, n) at given positions, SI.

        Args:
            position: given positions (N, n) or (n,).
            start: start values for Newton blocks.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
            AssemblyError: the machine file defines no outputs.
        """
        outputs, _, single = self.runner.run(FILE_OUTPUTS, {"position": position}, start=start)
        return outputs["outputs"][0] if single else outputs["outputs"]

    def embedding(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return G (N, n_v, m): velocities of all coordinates per unit of the given velocities."""
        outputs, samples = self._at(EMBEDDING, position, None, start)
        return np.asarray(
            outputs["G"]
            .reshape(*samples, self.ports.velocity.size, self.assembly.topology.n_v)
            .swapaxes(-1, -2)
        )

    def actuator_jacobian(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return R (N, n_u, m): actuator velocities per unit of the given velocities."""
        return self._jacobian(ACTUATORS, position, start)

    def _jacobian(self, of: Entry, position: object, start: object | None) -> np.ndarray:
        outputs, samples = self._at(JACOBIANS[of], position, None, start)
        m = self.ports.velocity.size
        return np.asarray(outputs["J"].reshape(*samples, outputs["J"].shape[-1] // m, m))

    def inverse_dynamics(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
        wrench: object | None = None,
        payload: Payload | None = None,
    ) -> Forces:
        """Return the actuator forces of a motion, in the model's formulation.

        The forces solve S u + K^T lambda + J^T w = M a + h, where u are the actuator forces and S
        their directions, K^T lambda are the loop forces, w is the wrench at the tool and J the
        tool's Jacobian, M is the mass matrix of all coordinates, and h are velocity terms, gravity,
        friction and springs. Redundant actuators share forces so that the sum of c u^2 is minimal.
        If cables or winches have bounds, the forces within these bounds minimize the sum of
        c (u - p)^2. For a winch, p is the force that holds its cable at the preload; for other
        actuators p is zero.

        Args:
            position, velocity, acceleration: the given motion (N, n) or (n,), SI.
            start: start values for Newton blocks.
            theta: free parameters.
            sharing: weights c of redundant actuators, and preloads of cables; ignored for other
                machines.
            wrench: w (N, 6) or (6,), force and moment that act on the tool at its center point,
                base frame, N and N m.
            payload: payload at the tool, in addition to that in the machine file.

        Returns:
            Forces: u in N or N m, multipliers, tensions of cables, the full state, and `weights` if
            forces are shared.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; or no tensions within bounds produce this motion.
            AssemblyError: there are passive degrees of freedom (see `Model.hybrid`).

        Source: Khalil and Ibrahim 2004; Gantry-Tau paper, eq. 1.
        """
        arguments = {"position": position, "velocity": velocity, "acceleration": acceleration}
        is_loaded = wrench is not None or payload is not None
        if not is_loaded and start is None and theta is None and sharing is EQUAL_SHARES:
            outcome = self.runner.once(INVERSE_DYNAMICS, position, velocity, acceleration)
            if outcome is not None:
                return self.forces(*outcome, False, self._equal_weights, start=None)
        arguments |= loads(wrench, payload) if is_loaded else {}
        if sharing is EQUAL_SHARES:
            weights, preloads = self._equal_weights, None
        else:
            weights = self.weights(sharing)
            preloads = sharing.preloads(self.runner.mechanism)
        outputs, diagnostics, single = self.runner.run(
            LOADED_INVERSE_DYNAMICS if is_loaded else INVERSE_DYNAMICS,
            arguments,
            start=start,
            theta=theta,
            weights=weights,
            preloads=preloads,
        )
        return self.forces(outputs, diagnostics, single, weights, start=start)

    def tension_margin(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        wrenches: Sequence[Sequence[float]] = NO_WRENCH,
    ) -> np.ndarray:
        """Return the largest margin of the tensions from all their bounds (N,), or a number, N.

        The margin is the largest m with least + m <= T <= greatest - m over all tensions T that
        produce the motion. Winches keep the same margin, expressed as tension, from their force
        limits. The margin is negative if no tensions satisfy the bounds, and infinite without
        bounds.

        Args:
            position, velocity, acceleration: the given motion (N, n) or (n,), SI; by default at
                rest.
            start: start values for Newton blocks.
            wrenches: forces and moments (6,) that may act at the tool, base frame, N and N m; the
                result is the smallest margin, which also holds for all wrenches between them.

        Raises:
            InputError: wrong names, shapes or values; or the machine has no cables.
            PoseError: out of reach or singular.
            AssemblyError: there are passive degrees of freedom, or the tension of a cable is not
                determined.
        """
        return self.weakest_cables(
            position, velocity, acceleration, start=start, wrenches=wrenches
        )[0]

    def weakest_cables(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        wrenches: Sequence[Sequence[float]] = NO_WRENCH,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the `tension_margin`, and the index of the limiting cable (-1 if none)."""
        terms, q, single = self.tension_terms(position, velocity, acceleration, start=start)
        margins, cable = loaded_margin(self.assembly, terms, q, wrenches)
        return (margins[0], cable[0]) if single else (margins, cable)

    def tension_terms(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
    ) -> tuple[TensionTerms, np.ndarray, bool]:
        """Return the tension terms, coordinates (N, n_q), and whether a single sample was given.

        Raises:
            InputError, PoseError, AssemblyError: see `tension_margin`.
        """
        if not self.runner.mechanism.cables:
            raise InputError.of(
                "rods", "no rod has tension bounds", "define `tension` for rods in the machine file"
            )
        n = self.ports.velocity.size
        arguments = {
            "position": position,
            "velocity": np.zeros(n) if velocity is None else velocity,
            "acceleration": np.zeros(n) if acceleration is None else acceleration,
        }
        inputs, single, count = self.runner.inputs(arguments, start, None)
        outputs, diagnostics = self.runner.settled(INVERSE_DYNAMICS, inputs, count)
        self.runner.require(diagnostics, inputs)
        return (
            tension_terms(self.assembly, self.ports, n, outputs["q"], outputs["tree_force"]),
            outputs["q"],
            single,
        )

    def weights(self, sharing: ForceSharing) -> np.ndarray | None:
        """Return weights (n_u,) of redundant actuators; None if the motion determines all forces.

        Raises:
            InputError: not a `ForceSharing`, or it does not fit the machine.
        """
        require_type(
            sharing, ForceSharing, "sharing", "give a tauloop.model.ForceSharing(weight={...})"
        )
        weights = sharing.weights(self.runner.mechanism)
        return weights if self.assembly.is_redundant else None

    def forces(
        self,
        outputs: dict[str, np.ndarray],
        diagnostics: SolveDiagnostics,
        single: bool,
        weights: np.ndarray | None = None,
        *,
        start: object | None,
    ) -> Forces:
        """Return the forces of a program's run, with `weights` if forces are shared."""
        actuators, closures, tensions = self._names
        pick = (lambda array: array[0]) if single else (lambda array: array)
        return Forces(
            actuator_names=actuators,
            closure_names=closures,
            force=pick(outputs["force"]),
            closure_force=pick(outputs["closure_force"]),
            tree_force=pick(outputs["tree_force"]),
            weights=weights,
            tension_names=tensions,
            tension=pick(outputs["tension"]) if "tension" in outputs else None,
            state=self.runner.state(outputs, diagnostics, start, single),
        )

    @cached_property
    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Names of actuators, independent loop equations and cables."""
        mechanism, names = self.runner.mechanism, self.assembly.loops.names
        actuators = tuple(actuator.name for actuator in mechanism.actuators)
        return actuators, tuple(names[i] for i in self.assembly.rows), tuple(mechanism.cables)

    @cached_property
    def _equal_weights(self) -> np.ndarray | None:
        return np.ones(len(self.runner.mechanism.actuators)) if self.assembly.is_redundant else None

    def forward_dynamics(
        self,
        position: object,
        velocity: object,
        force: object,
        *,
        start: object | None = None,
        theta: object | None = None,
        wrench: object | None = None,
        payload: Payload | None = None,
    ) -> State:
        """Return the motion under actuator forces: all positions, velocities and accelerations.

        Args:
            position, velocity: the given motion (N, n) or (n,), SI.
            force: actuator forces (N, n_u) or (n_u,), N or N m.
            wrench: w (N, 6) or (6,), force and moment that act on the tool at its center point,
                base frame, N and N m.
            payload: payload at the tool, in addition to that in the machine file.
            start: start values for Newton blocks.
            theta: free parameters.

        Returns:
            The full state; the given accelerations are among `a`.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach, or singular (at a leg-side singularity the reduced mass matrix
                does not exist).
        """
        arguments = {
            "position": position,
            "velocity": velocity,
            "force": force,
            **loads(wrench, payload),
        }
        if len(arguments) == 3 and start is None and theta is None:
            outcome = self.runner.once(FORWARD_DYNAMICS, position, velocity, force)
            if outcome is not None:
                return self.runner.state(*outcome, None)
        spec = FORWARD_DYNAMICS if len(arguments) == 3 else LOADED_FORWARD_DYNAMICS
        outputs, diagnostics, single = self.runner.run(spec, arguments, start=start, theta=theta)
        return self.runner.state(outputs, diagnostics, start, single)

    @with_old_keywords
    def derivatives(
        self,
        function: str,
        position: object,
        velocity: object,
        acceleration_or_force: object,
        *,
        wrt: str | Iterable[str] | None = None,
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
        wrench: object | None = None,
        payload: Payload | None = None,
    ) -> Derivatives:
        """Return a function and its Jacobians, exact along the manifold of closed loops.

        The loop and force equations are differentiated, not the solver's iterations (see
        `tauloop.compiler.derivatives.derivatives`).

        Args:
            function: "kinematics", "inverse_dynamics" or "forward_dynamics".
            position, velocity: the given motion (N, n) or (n,), SI.
            acceleration_or_force: accelerations (N, n), or forces (N, n_u) for forward
                dynamics.
            wrt: names of the inputs to differentiate with respect to, such as "position" or
                ("position", "payload"). By default all inputs of the function, `theta` if
                parameters are free, and `wrench` and `payload` if one of them is given.
            start: start values for Newton blocks.
            theta: free parameters.
            sharing: the weights of redundant actuators.
            wrench, payload: loads at the tool (see `inverse_dynamics`).

        Raises:
            InputError: wrong names, shapes or values; or the machine has cables, whose forces
                within bounds are not differentiable everywhere.
            PoseError: out of reach or singular.
            AssemblyError: as the function itself.
        """
        is_loaded = wrench is not None or payload is not None
        spec, names = differentiated(function, wrt, is_loaded, self.runner.catalogue.free)
        motion = (position, velocity, acceleration_or_force)
        arguments = dict(zip(spec.inputs, motion, strict=False))
        if "wrench" in spec.inputs:
            arguments |= loads(np.zeros(WRENCH) if wrench is None else wrench, payload)
        weights = self.weights(sharing)
        outputs, diagnostics, single = self.runner.run(
            spec, arguments, start=start, theta=theta, weights=weights
        )
        derivatives = arranged(self.runner, function, names, outputs, diagnostics)
        return derivatives.single() if single else derivatives

    @with_old_keywords
    def products(
        self,
        function: str,
        position: object,
        velocity: object,
        acceleration_or_force: object,
        *,
        factors: object,
        directions: Mapping[str, object],
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
    ) -> Products:
        """Return products of derivatives of dynamics with weights w and a direction d.

        With the Jacobian J of the function, the products are J d, w^T J and the gradient of
        w^T J d. J itself is not computed, so the products cost only a few times as much as the
        function, for any number of inputs and outputs (see
        `tauloop.compiler.derivatives.products`). For kinematics use `kinematics(position, d,
        zeros).a`, the second derivative of all coordinates along d.

        Args:
            function: "inverse_dynamics" or "forward_dynamics".
            position, velocity: the given motion (N, n) or (n,), SI.
            acceleration_or_force: accelerations (N, n), or forces (N, n_u) for forward
                dynamics.
            factors: w (N, n_out), weights of the forces or accelerations.
            directions: d (N, n) for each input, such as {"position": ...}; zero for inputs that are
                not named.
            start: start values for Newton blocks.
            theta: free parameters.
            sharing: the weights of redundant actuators.

        Raises:
            InputError, PoseError, AssemblyError: see `derivatives`.
        """
        motion = (position, velocity, acceleration_or_force)
        with multiplied(function, motion, factors, directions) as (spec, arguments):
            ports = self.runner.known_ports
            zeros = {name: np.zeros(ports[name].size) for name in spec.inputs if name in ports}
            inputs = zeros | arguments
            weights = self.weights(sharing)
            outputs, diagnostics, single = self.runner.run(
                spec, inputs, start=start, theta=theta, weights=weights
            )
        products = arranged_products(spec, function, outputs, diagnostics)
        return products.single() if single else products

    def casadi(self, function: str, *, compiled: bool = False) -> ca.Function:
        """Return inverse or forward dynamics as a CasADi Function with its exact sparse Jacobian.

        For optimizers such as IPOPT: `casadi.jacobian` of an expression that calls the function
        uses this Jacobian, and the Hessian of a Lagrangian is exact. Parameters are nominal. The
        function is on the branch of the reference pose, and does not check its inputs.

        Args:
            function: "inverse_dynamics" (force) or "forward_dynamics" (acceleration of the given
                coordinates).
            compiled: whether the function is machine code of this computer. It then includes
                adjoints and their derivatives, which CasADi calls instead of differentiating the
                Jacobian.

        Raises:
            InputError: the function does not exist, loops are solved by iteration, or only some
                components of a rotation are independent.
            EngineError: machine code is requested, but there is no compiler.
            AssemblyError: as the function itself.
        """
        from tauloop.model.faces.casadi_face import casadi_function

        require_type(compiled, bool, "compiled", "give True or False")
        return casadi_function(self.runner, function, compiled=compiled)

    def as_jax(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """Return inverse or forward dynamics for JAX, with `jit`, `vmap`, `grad` and `jvp`.

        The function takes positions, velocities and accelerations (or forces) (..., n) and returns
        forces (or accelerations). Unreachable and singular poses return NaN. Derivatives are exact
        up to second order. Parameters are nominal, and Newton blocks start at the reference pose.
        JAX must use double precision on the CPU.

        Args:
            function: "inverse_dynamics" (force) or "forward_dynamics" (acceleration of the given
                coordinates).

        Raises:
            InputError: the function does not exist, JAX uses single precision, or only some
                components of a rotation are independent.
            EngineError: JAX is not installed (extra `jax`), or there is no compiler.
            AssemblyError: as the function itself.
        """
        from tauloop.model.faces.jax_face import jax_function

        return jax_function(self.runner, function)

    def as_torch(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """Return inverse or forward dynamics for PyTorch, with autograd and `torch.func`.

        The function takes positions, velocities and accelerations (or forces), tensors (..., n),
        and returns forces (or accelerations). Unreachable and singular poses return NaN.
        Derivatives are exact up to second order, in reverse and forward mode. Parameters are
        nominal, and Newton blocks start at the reference pose. The function computes in double
        precision on the CPU; single-precision tensors and tensors on other devices are converted
        before and after.

        Args:
            function: "inverse_dynamics" (force) or "forward_dynamics" (acceleration of the given
                coordinates).

        Raises:
            InputError: the function does not exist, or only some components of a rotation are
                independent.
            EngineError: PyTorch is not installed (extra `torch`), or there is no compiler.
            AssemblyError: as the function itself.
        """
        from tauloop.model.faces.torch_face import torch_function

        return torch_function(self.runner, function)

    def regressor(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        output: str = "actuators",
        start: object | None = None,
        theta: object | None = None,
        samples: int = 0,
    ) -> np.ndarray:
        """Return the regressor Y (N, n_out, n_pi) with forces = Y pi.

        Args:
            position, velocity, acceleration: the given motion (N, n), SI.
            output: "actuators" for the actuator forces u (with redundant actuators, the forces with
                the smallest sum of u^2); "joints" for the forces A^T u on the driven coordinates;
                "leading" for the resultants R^T u of all actuators on the motions of the leading
                actuators, which do not depend on preload (see `actuator_jacobian` for R); or
                "leading_joints" for the resultants on the coordinates that the leading actuators
                drive.
            start: start values for Newton blocks.
            theta: free parameters.
            samples: total number of samples if the given samples are part of a longer series; it
                determines the choice of the compiler.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        InputError.raise_if_any(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        spec, columns = REGRESSORS[output], len(self.runner.catalogue.parameters)
        if start is None and theta is None:
            outcome = self.runner.once(spec, position, velocity, acceleration)
            if outcome is not None:
                return outcome[0]["regressor"].reshape(-1, columns)
        arguments = {"position": position, "velocity": velocity, "acceleration": acceleration}
        inputs, single, n = self.runner.inputs(arguments, start, theta)
        outputs, diagnostics = self.runner.settled(spec, inputs, n, samples)
        self.runner.require(diagnostics, inputs)
        Y = outputs["regressor"]
        Y = Y.reshape(n, Y.shape[1] // columns, columns)
        return np.asarray(Y[0] if single else Y)

    def regressor_reads_start(self, output: str = "actuators") -> bool:
        """Return whether start values affect the regressor.

        Newton's method starts from them, and they select the revolution of angles on which forces
        depend. Loops that are solved in closed form do not need them.

        Args:
            output: as for `regressor`.

        Raises:
            InputError: the output is unknown.
        """
        InputError.raise_if_any(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        return reads_start(self.runner.program(REGRESSORS[output]), ("regressor",))

    def platform_jacobian(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return (N, n, m): independent platform velocities per unit of the given velocities."""
        return self._jacobian(PLATFORM, position, start)

    def tool_jacobian(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return (N, 6, m): the tool's twist in the base frame per unit of the given velocities."""
        return self.tool(position, start=start).jacobian

    def tool(
        self, position: object, velocity: object | None = None, *, start: object | None = None
    ) -> ToolMotion:
        """Return pose, twist and Jacobian of the tool.

        Args:
            position, velocity: the given motion (N, n) or (n,), SI; at rest without the velocity.
            start: start values for Newton blocks.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        outputs, samples = self._at(TOOL, position, velocity, start)
        return ToolMotion(
            place=outputs["place"].reshape(*samples, 3),
            rotation=outputs["rotation"].reshape(*samples, 3, 3).swapaxes(-1, -2),
            twist=outputs["twist"].reshape(*samples, 6),
            jacobian=outputs["jacobian"]
            .reshape(*samples, self.ports.velocity.size, 6)
            .swapaxes(-1, -2),
        )

    def mass_matrix(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return the mass matrix M (N, m, m) of the given velocities.

        M is defined by R^T u + J^T w = M a + c + g + f, with actuator forces u (see
        `actuator_jacobian` for R), the wrench w at the tool (see `tool_jacobian` for J), the given
        accelerations a, Coriolis and centripetal forces c, gravity g, and friction and springs f.

        Returns:
            M = G^T M_tree G, kg, kg m or kg m^2, with the mass matrix M_tree of all coordinates and
            G of `embedding`.

        Source: Khalil and Ibrahim 2004.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
            AssemblyError: a given velocity moves nothing with inertia.
        """
        outputs, samples = self._at(TERMS, position, None, start)
        m = self.ports.velocity.size
        return np.asarray(outputs["mass_matrix"].reshape(*samples, m, m))

    def coriolis(
        self, position: object, velocity: object, *, start: object | None = None
    ) -> np.ndarray:
        """Return Coriolis and centripetal forces c (N, m) on the given velocities.

        Returns:
            c, N or N m. Errors are those of `mass_matrix`.
        """
        outputs, samples = self._at(TERMS, position, velocity, start)
        return np.asarray(outputs["coriolis"].reshape(*samples, self.ports.velocity.size))

    def gravity(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return the forces g (N, m) on the given velocities that balance gravity.

        Returns:
            g, N or N m. Errors are those of `mass_matrix`.
        """
        outputs, samples = self._at(TERMS, position, None, start)
        return np.asarray(outputs["gravity"].reshape(*samples, self.ports.velocity.size))

    def bias(
        self, position: object, velocity: object, *, start: object | None = None
    ) -> np.ndarray:
        """Return the forces c + g + f (N, m) at zero acceleration, N or N m.

        c are Coriolis and centripetal forces, g is gravity, f are friction and springs. Errors are
        those of `mass_matrix`.
        """
        outputs, samples = self._at(TERMS, position, velocity, start)
        total = outputs["coriolis"] + outputs["gravity"] + outputs["losses"]
        return np.asarray(total.reshape(*samples, self.ports.velocity.size))

    def kinetic_energy(
        self, position: object, velocity: object, *, start: object | None = None
    ) -> np.ndarray:
        """Return the kinetic energy T = v^T M v / 2 (N,) or a number, J, as the sum over inertias.

        Raises:
            InputError, PoseError: see `mass_matrix`.
            DescriptionError: the kinetic energy of a rod is not a function of its velocity.
        """
        outputs, samples = self._at(ENERGIES, position, velocity, start)
        return np.asarray(outputs["kinetic"].reshape(samples))

    def potential_energy(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return the potential energy (N,) or a number, J, of gravity and springs.

        It is defined up to a constant. Errors are those of `kinetic_energy`.
        """
        outputs, samples = self._at(ENERGIES, position, None, start)
        return np.asarray(outputs["potential"].reshape(samples))

    def _at(
        self, spec: ProgramSpec, position: object, velocity: object | None, start: object | None
    ) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
        """Return the outputs (N, n) of a program of states, and the shape of the samples.

        The machine is at rest if the velocity is None.
        """
        if velocity is None:
            velocity = np.zeros(self.ports.velocity.size)
        if start is None and (outcome := self.runner.once(spec, position, velocity)):
            return outcome[0], ()
        arguments = {"position": position, "velocity": velocity}
        outputs, _, single = self.runner.run(spec, arguments, start=start)
        return outputs, () if single else (len(outputs["q"]),)

    @property
    def blocks(self) -> tuple[SolvedBlock, ...]:
        """Solved blocks of the position problem."""
        return self.runner.catalogue.positions.blocks

    @property
    def branches(self) -> Branches:
        """Signs of the roots of closed forms; see `Branches`."""
        return self.runner.catalogue.branches

    @property
    def turning(self) -> tuple[str, ...]:
        """Names of the angles that loops determine up to full revolutions."""
        return self.runner.turning

    def condition(self, q: np.ndarray) -> np.ndarray:
        """Return dimensionless condition numbers (N,) of assembled poses (N, n_q).

        Raises:
            InputError: wrong shapes or values.
        """
        poses, _ = assembled_poses(q, self.assembly.topology)
        return self.runner.condition(poses)

    def program(self, program: ProgramSpec | str) -> Program:
        """Return a program of this machine from its specification or name."""
        return self.runner.program(_spec(program))

    def compiled(self, program: ProgramSpec | str, outputs: tuple[str, ...]) -> CompiledFunction:
        """Return machine code of a program, by specification or name (see `Runner.compiled`)."""
        return self.runner.compiled(_spec(program), text_names(outputs, "outputs"))

    def source_function(self, program: ProgramSpec | str, outputs: tuple[str, ...]) -> CFunction:
        """Return a program with only these outputs (see `Runner.source_function`)."""
        return self.runner.source_function(_spec(program), text_names(outputs, "outputs"))


def _given_motion(
    position: object, velocity: object | None, acceleration: object | None
) -> dict[str, object]:
    """Return the given arrays of a motion by name.

    Raises:
        InputError: an acceleration is given without a velocity.
    """
    if acceleration is not None and velocity is None:
        remedy = "give the velocity too; zeros for a motion that starts from rest"
        raise InputError.of("velocity", "is missing, but an acceleration is given", remedy)
    optional = {"velocity": velocity, "acceleration": acceleration}
    return {"position": position} | {
        name: array for name, array in optional.items() if array is not None
    }


def _spec(program: ProgramSpec | str) -> ProgramSpec:
    return program if isinstance(program, ProgramSpec) else program_named(program)
