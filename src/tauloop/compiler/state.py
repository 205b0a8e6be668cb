"""Results of a model's functions: states, forces and accelerations, with diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType

import numpy as np

from tauloop.common import result
from tauloop.common.names.deprecated import old_attribute, old_name
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.limits import (
    ACCURATE,
    CONVERGED as CONVERGED,
    SMALLEST_PIVOT as SMALLEST_PIVOT,
    WITHIN as WITHIN,
)
from tauloop.compiler.program import ClosedForm, Program, RunDiagnostics
from tauloop.equations.assembly.limits import Limits
from tauloop.mechanism.suggestions import place


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveDiagnostics(ReprMixin):
    """Diagnostics of a run over N samples.

    Attributes:
        closed_forms: the loops solved in closed form.
        discriminants: discriminants of these loops (N, n); negative where a loop cannot close.
        smallest_pivot: smallest pivot of all eliminations, relative to its median over sampled
            poses (N,).
        residuals: final residual (N,) of each loop solved by Newton's method, by name.
        steps: number of Newton steps (N,); floats if machine code reports it.
        finite: whether all results are finite (N,).
        missed: violation of tension bounds, relative to the largest right-hand side of their
            conditions (N,).
        is_sound: whether all samples are already known to be within reach and regular.
    """

    closed_forms: tuple[ClosedForm, ...]
    discriminants: np.ndarray
    smallest_pivot: np.ndarray
    residuals: dict[str, np.ndarray]
    steps: np.ndarray
    finite: np.ndarray
    missed: np.ndarray
    is_sound: bool = False

    @property
    def iterations(self) -> np.ndarray:
        """Number of Newton steps (N,)."""
        return self.steps.astype(int)

    @property
    def all_sound(self) -> bool:
        """Whether all samples are within reach and regular."""
        return self.is_sound or bool((self.is_reached & self.is_regular).all())

    @property
    def is_of_machine_code(self) -> bool:
        """Whether the diagnostics are those of all loops together, as machine code reports them."""
        return set(self.residuals) == {"loops"}

    @property
    def is_within(self) -> np.ndarray:
        """Whether all tensions are within their bounds (N,)."""
        return np.asarray(self.missed < WITHIN)

    def at(self, samples: np.ndarray) -> SolveDiagnostics:
        """Return the diagnostics of the samples with these indices."""
        return replace(
            self,
            discriminants=self.discriminants[samples],
            smallest_pivot=self.smallest_pivot[samples],
            residuals={name: residual[samples] for name, residual in self.residuals.items()},
            steps=self.steps[samples],
            finite=self.finite[samples],
            missed=self.missed[samples],
        )

    @property
    def is_reached(self) -> np.ndarray:
        """Whether all loops close (N,)."""
        ok = (self.discriminants >= 0).all(axis=1)
        for residual in self.residuals.values():
            ok &= np.abs(residual) < CONVERGED
        return np.asarray(ok)

    @property
    def is_regular(self) -> np.ndarray:
        """Whether all linear blocks can be solved, and nothing overflows (N,)."""
        return np.asarray((self.smallest_pivot > SMALLEST_PIVOT) & self.finite)

    @property
    def rounding_of_forces(self) -> tuple[result.Diagnostic, ...]:
        """Return the relative rounding error of the forces as a diagnostic if it is too large.

        A coordinate at a distance d from its dead center has a pivot p of the order of sqrt(d), and
        accelerations that grow as 1 / p^3. A rounding error of 1e-16 in d then causes a relative
        error of 1e-16 / p^2 in the accelerations.
        """
        least = float(self.smallest_pivot.min(initial=np.inf))
        pivot = max(least, SMALLEST_PIVOT)
        # The square of the pivot overflows for machines without loops.
        relative_error = np.finfo(float).eps / pivot / pivot
        if relative_error <= ACCURATE:
            return ()
        advice = (
            f"a loop is nearly at a dead center (smallest pivot {least:.2g} of its usual size), "
            "where forces grow without bound: keep the motion away from it"
        )
        name = "relative rounding error of the forces"
        return (result.diagnostic(name, relative_error, at_most=ACCURATE, advice=advice),)

    @property
    def has_overflowed(self) -> np.ndarray:
        """Return whether results are not finite although all equations can be solved (N,)."""
        return np.asarray(self.is_reached & (self.smallest_pivot > SMALLEST_PIVOT) & ~self.finite)


def solve_diagnostics(
    program: Program,
    diagnostics: RunDiagnostics,
    results: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> SolveDiagnostics:
    """Return the diagnostics of a program's run.

    Args:
        program: program that ran.
        diagnostics: diagnostics of its run.
        results: outputs of the program (N, n), which must be finite.
    """
    n = len(diagnostics.pivots)
    residuals: dict[str, np.ndarray] = {}
    iterations = np.zeros(n, dtype=int)
    for step, phi, counts in diagnostics.newton:
        for name, column in zip(step.what, phi.T, strict=True):
            residuals[name] = column
        iterations = np.maximum(iterations, counts)
    smallest = diagnostics.pivots.min(axis=1, initial=np.inf)
    return SolveDiagnostics(
        closed_forms=program.closed_forms,
        discriminants=diagnostics.discriminants,
        smallest_pivot=np.where(np.isnan(smallest), 0.0, smallest),
        residuals=residuals,
        steps=iterations,
        finite=np.logical_and.reduce(
            [np.ones(n, bool), *(np.isfinite(a).all(axis=1) for a in results.values())]
        ),
        missed=diagnostics.missed,
    )


def joined(parts: list[SolveDiagnostics]) -> SolveDiagnostics:
    """Return the joined diagnostics of several runs of one program.

    Machine code reports fewer diagnostics than the interpreter.
    """
    brief = [part.is_of_machine_code for part in parts]
    if any(brief) and not all(brief):
        pattern = parts[brief.index(False)]
        parts = [
            _spread(part, pattern) if is_brief else part
            for part, is_brief in zip(parts, brief, strict=True)
        ]
    residuals: dict[str, np.ndarray] = {}
    for key in parts[0].residuals:
        residuals[key] = np.concatenate([part.residuals[key] for part in parts])
    return SolveDiagnostics(
        closed_forms=parts[0].closed_forms,
        discriminants=np.concatenate([part.discriminants for part in parts]),
        smallest_pivot=np.concatenate([part.smallest_pivot for part in parts]),
        residuals=residuals,
        steps=np.concatenate([part.steps for part in parts]),
        finite=np.concatenate([part.finite for part in parts]),
        missed=np.concatenate([part.missed for part in parts]),
    )


def _spread(health: SolveDiagnostics, pattern: SolveDiagnostics) -> SolveDiagnostics:
    """Return diagnostics of machine code with a column for every closed form and loop."""
    residual = health.residuals["loops"]
    return replace(
        health,
        closed_forms=pattern.closed_forms,
        discriminants=np.repeat(health.discriminants, pattern.discriminants.shape[1], axis=1),
        residuals=dict.fromkeys(pattern.residuals, residual),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Origin of the full revolutions of angles, which the loops do not determine.

    Attributes:
        angles: names of the angles that are not given.
        nearest: pose to which these angles are nearest: "reference pose", "start" or "sample
            before".
    """

    angles: tuple[str, ...]
    nearest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State(ReprMixin):
    """Coordinates, and velocities and accelerations if requested.

    Attributes:
        given: the coordinates from which all others follow, such as "platform coordinates x, y, z".
        coordinate_names, velocity_names: names of the columns.
        q: coordinates (N, n_q) or (n_q,) for a single sample.
        v, a: velocities and accelerations (N, n_v) or (n_v,); None if not computed.
        health: diagnostics of every sample.
        limits: the machine's limits, which `diagnostics` checks.
        turns: origin of the full revolutions of angles.
        has_opened: whether the loops of each sample were open at a point of the straight line that
            leads to it (N,); None for samples that were not followed along a line.

    Examples:
        >>> import tauloop as tl
        >>> state = tl.Model(tl.load("delta")).platform.kinematics([[0.05, 0.0, -0.5]])
        >>> state.coordinate("platform.x").tolist()
        [0.05]
    """

    given: str = ""
    coordinate_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray | None
    a: np.ndarray | None
    health: SolveDiagnostics
    limits: Limits = field(repr=False)
    turns: Turns
    has_opened: np.ndarray | None = None
    evidence = old_attribute("evidence", "diagnostics")

    @property
    def diagnostics(self) -> tuple[result.Diagnostic, ...]:
        """Diagnostics: coordinates beyond a stop, angles in degrees, and loops open on the line."""
        return (*self.limits.diagnostics(self.q), *self.opened)

    @property
    def opened(self) -> tuple[result.Diagnostic, ...]:
        """Diagnostic: number of poses with open loops on the line to them; empty if none."""
        if self.has_opened is None or not self.has_opened.any():
            return ()
        first = int(np.flatnonzero(self.has_opened)[0])
        opened = result.diagnostic(
            "poses whose loops stay open on the line that leads to them",
            self.has_opened.sum(),
            at_most=0.0,
            advice=f"first at sample {first}: the line to the pose may cross a singularity, or the "
            "pose may be in another assembly mode; go through intermediate poses, or list all "
            "modes (`tauloop.assembly_modes`)",
        )
        return (opened,)

    def coordinate(self, name: str) -> np.ndarray:
        """Return the values of one coordinate by its name, m or rad."""
        return np.asarray(self.q[..., place(name, self.coordinate_names, "coordinate")])

    def single(self) -> State:
        """Return the first sample, without the axis of samples."""
        v, a = (None if array is None else array[0] for array in (self.v, self.a))
        return replace(self, q=self.q[0], v=v, a=a)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forces(ReprMixin):
    """Inverse dynamics of a motion.

    Attributes:
        actuator_names, closure_names: names of the columns.
        force: actuator forces u (N, n_u), N or N m.
        closure_force: multipliers lambda of the independent loop equations (N, c), N (N m for
            directions).
        tree_force: M a + h on all velocities (N, n_v).
        state: the full motion.
        weights: weights w (n_u,) of redundant actuators, whose forces minimize the sum of w u^2;
            None if the motion determines all forces.
        tension_names: names of the cables.
        tension: tensions of the cables (N, k), N.

    Examples:
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("delta"))
        >>> forces = model.platform.inverse_dynamics([[0.0, 0.0, -0.5]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]])
        >>> forces.actuator_names
        ('leg1.motor', 'leg2.motor', 'leg3.motor')
        >>> forces.force.round(2).tolist()
        [[-1.37, -1.37, -1.37]]
    """

    actuator_names: tuple[str, ...]
    closure_names: tuple[str, ...]
    force: np.ndarray
    closure_force: np.ndarray
    tree_force: np.ndarray
    state: State
    weights: np.ndarray | None = None
    tension_names: tuple[str, ...] = ()
    tension: np.ndarray | None = None
    evidence = old_attribute("evidence", "diagnostics")

    @property
    def given(self) -> str:
        """The coordinates in which the motion was given, such as "platform coordinates x, y, z"."""
        return self.state.given

    def _contents(self) -> dict[str, object]:
        return {"given": self.given, **ReprMixin._contents(self)}

    @property
    def diagnostics(self) -> tuple[result.Diagnostic, ...]:
        """Diagnostics of the motion (see `State.diagnostics`), and of rounding near dead centers."""
        return (*self.state.diagnostics, *self.state.health.rounding_of_forces)

    @property
    def is_shared(self) -> bool:
        """Whether actuation is redundant, so that other forces cause the same motion."""
        return self.weights is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerations(ReprMixin):
    """Forward dynamics of a motion.

    Attributes:
        names: names of the columns.
        acceleration: accelerations (N, m) of the coordinates in which the motion was given, m/s^2
            or rad/s^2.
        state: the full motion.

    Examples:
        >>> import tauloop as tl
        >>> fall = tl.Model("delta").forward_dynamics([0.0, 0.0, -0.5], [0.0] * 3, [0.0] * 3)
        >>> fall.given
        'platform coordinates x, y, z'
        >>> fall.acceleration[2].round(2).item()
        -14.8
    """

    names: tuple[str, ...]
    acceleration: np.ndarray
    state: State

    @property
    def given(self) -> str:
        """The coordinates in which the motion was given, such as "platform coordinates x, y, z"."""
        return self.state.given

    @property
    def diagnostics(self) -> tuple[result.Diagnostic, ...]:
        """Diagnostics of the motion (see `State.diagnostics`), and of rounding near dead centers."""
        return (*self.state.diagnostics, *self.state.health.rounding_of_forces)

    def _contents(self) -> dict[str, object]:
        return {"given": self.given, **ReprMixin._contents(self)}


def __getattr__(name: str) -> object:
    return old_name(__name__, name)
