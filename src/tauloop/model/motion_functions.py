"""All functions of one entry of a machine: the given motion in, everything else out, on batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.errors import InputError, Problem
from tauloop.mechanism.cables import cables
from tauloop.model.force_sharing import EQUAL_SHARES, ForceSharing
from tauloop.model.kinematic_functions import KinematicFunctions
from tauloop.model.tension_terms import NO_WRENCH, TensionTerms, loaded_margin, tension_terms
from tauloop.programs.state import Forces, Health, State

#: What the rows of a regressor may be.
OUTPUTS = ("actuators", "joints", "leading", "leading_joints")


class MotionFunctions(KinematicFunctions):
    """All functions of one entry: the given motion in, everything else out."""

    def inverse_dynamics(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
    ) -> Forces:
        """Actuator forces that the motion needs, by the model's formulation.

        S u + K^T lambda = M a + h: gravity, inertia, rotors, friction and springs included. Redundant actuators
        share forces by the least sum of w u^2. Cables keep within their bounds, and their winches within their largest
        forces: of all forces that do, those with the least sum of w (u - p)^2 are chosen, where p is the force with
        which a winch holds its cable at its preload, and zero for other actuators.

        Args:
            position, velocity, acceleration: the given motion (N, n) or (n,), SI.
            start: start values for Newton blocks.
            theta: free parameters.
            sharing: the weights w of redundant actuators and preloads of cables; no part in other machines.

        Returns:
            Forces: u in N or N m, multipliers, tensions of cables, the full state; `weights` where they were shared.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; or no tensions within their bounds give this motion.
            AssemblyError: there are passive freedoms (see `Model.hybrid`).
        Source: Khalil and Ibrahim 2004; Gantry-Tau paper, eq. 1.
        """
        given = {"position": position, "velocity": velocity, "acceleration": acceleration}
        weights = self.weights(sharing)
        preloads = sharing.preloads(self._model.mechanism)
        outputs, evidence, single = self.run(
            "inverse_dynamics", given, start=start, theta=theta, weights=weights, preloads=preloads
        )
        return self.forces(outputs, evidence, single, weights, start=start)

    def tension_margin(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        wrenches: Sequence[Sequence[float]] = NO_WRENCH,
    ) -> np.ndarray:
        """How far cables can stay within all their bounds at once while they give a motion (N,) or a number, N.

        max m with least + m <= T <= greatest - m over all tensions T that give the motion, where winches stay as far
        (as tension) from their largest forces; negative where none keep the bounds, infinite where nothing does.

        Args:
            position, velocity, acceleration: the given motion (N, n) or (n,), SI; at rest where not given.
            start: start values for Newton blocks.
            wrenches: forces and moments (6,) that may act at the tool, base frame, N and N m; the least margin counts,
                which holds for all wrenches between them too.

        Raises:
            InputError: wrong names, shapes or values; or the machine has no cables.
            PoseError: out of reach or singular.
            AssemblyError: there are passive freedoms, or the tension of a cable is not determined.
        """
        return self.weakest_cables(position, velocity, acceleration, start=start, wrenches=wrenches)[0]

    def weakest_cables(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        wrenches: Sequence[Sequence[float]] = NO_WRENCH,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Margins as `tension_margin`, and which cable bounds each: its number among the cables, -1 where none does."""
        terms, q, single = self.tension_terms(position, velocity, acceleration, start=start)
        margins, cable = loaded_margin(self._model, terms, q, wrenches)
        return (margins[0], cable[0]) if single else (margins, cable)

    def tension_terms(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
    ) -> tuple[TensionTerms, np.ndarray, bool]:
        """What tensions depend on in a motion, whether cables can give it or not, and its coordinates (N, n_q).

        Raises:
            InputError, PoseError, AssemblyError: as `tension_margin`.
        """
        model = self._model
        if not cables(model.mechanism):
            remedy = "give rods `tension` in the machine file"
            raise InputError(Problem(where="rods", what="none has bounds of its tension", remedy=remedy))
        n = self.ports.velocity.size
        given = {
            "position": position,
            "velocity": np.zeros(n) if velocity is None else velocity,
            "acceleration": np.zeros(n) if acceleration is None else acceleration,
        }
        inputs, single, count = self._inputs(given, start, None)
        outputs, evidence = self._run("inverse_dynamics", inputs, count)
        self._require(evidence, inputs, outputs["q"])
        return tension_terms(model, self.ports, n, outputs["q"], outputs["tree_force"]), outputs["q"], single

    def weights(self, sharing: ForceSharing) -> np.ndarray | None:
        """Weights (n_u,) of redundant actuators; None where the motion determines all forces."""
        weights = sharing.weights(self._model.mechanism)
        return weights if self._model.assembly.is_redundant else None

    def forces(
        self,
        outputs: dict[str, np.ndarray],
        evidence: Health,
        single: bool,
        weights: np.ndarray | None = None,
        *,
        start: object | None,
    ) -> Forces:
        """The result of a program of forces from a start; `weights` where redundant actuators shared them."""
        state = self._state(outputs, evidence, start)
        loops = self._model.assembly.loops
        pick = (lambda array: array[0]) if single else (lambda array: array)
        return Forces(
            actuator_names=tuple(actuator.name for actuator in self._model.mechanism.actuators),
            closure_names=tuple(loops.names[i] for i in self._model.assembly.rows),
            force=pick(outputs["force"]),
            closure_force=pick(outputs["closure_force"]),
            tree_force=pick(outputs["tree_force"]),
            weights=weights,
            tension_names=tuple(cables(self._model.mechanism)),
            tension=pick(outputs["tension"]) if "tension" in outputs else None,
            state=state.single() if single else state,
        )

    def forward_dynamics(
        self,
        position: object,
        velocity: object,
        force: object,
        *,
        start: object | None = None,
        theta: object | None = None,
    ) -> State:
        """Motion that actuator forces give: all accelerations, with positions and velocities closed around the given.

        Args:
            position, velocity: the given motion (N, n) or (n,), SI.
            force: actuator forces (N, n_u) or (n_u,), N or N m.
            start: start values for Newton blocks.
            theta: free parameters.

        Returns:
            The full state; the given accelerations are among `a`.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach, or singular (at a leg-side singularity the reduced mass matrix does not exist).
        """
        inputs, single, n = self._inputs({"position": position, "velocity": velocity, "force": force}, start, theta)
        outputs, evidence = self._run("forward_dynamics", inputs, n)
        self._require(evidence, inputs, outputs["q"])
        state = self._state(outputs, evidence, start)
        return state.single() if single else state

    def regressor(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        output: str = "actuators",
        start: object | None = None,
        theta: object | None = None,
    ) -> np.ndarray:
        """Regressor Y (N, n_out, n_pi) with forces = Y pi.

        Args:
            position, velocity, acceleration: the given motion (N, n), SI.
            output: "actuators" for actuator forces u (of redundant actuators those with the least sum of u^2), "joints"
                for forces on the driven coordinates (A^T u); "leading" for the resultants R^T u of all actuators on
                the motions of the leading ones, which no preload enters (see `actuator_jacobian` for R), and
                "leading_joints" for those on the coordinates that the leading ones drive.
            start: start values for Newton blocks.
            theta: free parameters.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        if output not in OUTPUTS:
            raise InputError(
                Problem(where="output", what=f"{output!r} is unknown", remedy=f"one of {', '.join(OUTPUTS)}")
            )
        given = {"position": position, "velocity": velocity, "acceleration": acceleration}
        inputs, single, n = self._inputs(given, start, theta)
        outputs, evidence = self._run(f"regressor_{output}", inputs, n)
        self._require(evidence, inputs)
        n_pi = len(self._model.parameters)
        Y = outputs["regressor"].reshape(n, -1, n_pi)
        return np.asarray(Y[0] if single else Y)
