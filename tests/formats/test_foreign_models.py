"""Closed-loop models that others wrote: assembled from their neutral poses, and moved as Pinocchio moves them.

Pinocchio reads the same URDF with its own reader; the loops are closed here by equations on its
frames, solved together with its mass matrix and nonlinear effects in the null space of these
equations, since some are redundant.
"""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import yaml
from extras import extra

from conftest import shared_folder
from tauloop import Model
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.assembly.freedoms.spins import find_spins
from tauloop.formats.urdf.reader import load_urdf
from tauloop.formats.urdf.tree import identifier
from tauloop.kinematics import random_states
from tauloop.kinematics.states import RandomStates
from tauloop.verification.engines import check_with_engines, pinocchio_engine
from tauloop.verification.engines.comparison import OWN_FORWARD, OWN_INVERSE

pin = extra("pinocchio")

MODELS = shared_folder() / "models"
pytestmark = pytest.mark.skipif(
    not MODELS.is_dir(), reason="the models of others are not here (../shared/models)"
)

#: Agreement with Pinocchio, relative to the largest value of its kind (issue 4).
PINOCCHIO = 1e-8
#: Regularization of Pinocchio's proximal solver (design, "Checking against other engines": none
#: gives nonsense).
PROXIMAL = 1e-8
#: Second point of a hinge along its axis, m: of the size of the machines.
HINGE = 0.1
#: Loops are closed to rounding.
CLOSED = 1e-10
#: Singular values below this share of the largest are zero: they are at rounding, the next ones at
#: 1e-4 and more.
RANK = 1e-9
#: States that are compared.
STATES = 12

#: Folder of every Gepetto model: (loop equations, rank, mobility, motors, passive freedoms).
GEPETTO = {
    "5bar_linkage_iso3d": (3, 3, 2, 2, 0),
    "5bar_linkage_iso6d": (6, 6, 2, 2, 0),
    "digit_like": (18, 18, 9, 6, 3),
    "robot_delta": (18, 9, 5, 2, 3),
}


#: GRBDA's: (loop equations, rank, mobility).
GRBDA = {
    "four_bar": (5, 2, 1),
    "six_bar": (5, 2, 3),
    "planar_leg_linkage": (5, 2, 2),
    "revolute_rotor_chain": (3, 3, 3),
}


def folder(name: str) -> Path:
    return MODELS / "example_parallel_robots" / name


@functools.cache
def gepetto(name: str) -> Model:
    """The machine with all its degrees of freedom: Pinocchio locks no spin."""
    mechanism = load_urdf(folder(name) / "robot.urdf", folder(name) / "robot.yaml")
    return Model(mechanism, locks=Locks(spins=False))


@dataclass
class InPinocchio:
    """A URDF in Pinocchio, with the pairs of frames that close its loops.

    Attributes:
        model: Pinocchio's model.
        pairs: (frame, frame, rows): how many of the six relative velocities (v, w) vanish, in base
            axes.
        gears: further rows of K, constant.
    """

    model: Any
    pairs: list[tuple[int, int, int]]
    gears: np.ndarray

    def configuration(self, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
        """Pinocchio's q from coordinates by name; a joint without limits has cosine and sine."""
        result = pin.neutral(self.model)
        for i in range(1, self.model.njoints):
            joint = self.model.joints[i]
            value = q[names.index(identifier(self.model.names[i]))]
            result[joint.idx_q : joint.idx_q + joint.nq] = (
                [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            )
        return result

    def order(self, names: tuple[str, ...]) -> list[int]:
        """Index of our velocity behind each of Pinocchio's."""
        return [names.index(identifier(name)) for name in list(self.model.names)[1:]]

    def terms(
        self, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """M, nonlinear effects h, and K, k with K a = k."""
        model, data = self.model, self.model.createData()
        M = np.array(pin.crba(model, data, q))
        M = np.triu(M) + np.triu(M, 1).T
        h = np.array(pin.nonLinearEffects(model, data, q, v))
        data = model.createData()
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        K, k = [self.gears], [np.zeros(len(self.gears))]
        for first, second, rows in self.pairs:
            K.append(
                (
                    pin.getFrameJacobian(model, data, first, world)
                    - pin.getFrameJacobian(model, data, second, world)
                )[:rows]
            )
            difference = (
                pin.getFrameClassicalAcceleration(model, data, first, world).vector
                - pin.getFrameClassicalAcceleration(model, data, second, world).vector
            )
            k.append(-difference[:rows])
            gap = data.oMf[first].actInv(data.oMf[second])
            assert np.abs(gap.translation).max() < CLOSED
            assert rows < 6 or np.abs(gap.rotation - np.eye(3)).max() < CLOSED
            assert rows != 5 or np.abs(gap.rotation[2] - np.eye(3)[2]).max() < CLOSED
        return M, h, np.concatenate(K), np.concatenate(k)


def gepetto_in_pinocchio(name: str) -> InPinocchio:
    model = pin.buildModelFromUrdf(str(folder(name) / "robot.urdf"))
    side = yaml.safe_load((folder(name) / "robot.yaml").read_text(encoding="utf-8"))
    pairs = [
        (model.getFrameId(first), model.getFrameId(second), 3 if kind == "3d" else 6)
        for (first, second), kind in zip(side["closed_loop"], side["type"], strict=True)
    ]
    return InPinocchio(model=model, pairs=pairs, gears=np.zeros((0, model.nv)))


def grbda_in_pinocchio(name: str) -> InPinocchio:
    """GRBDA's own elements, read here once more: hinges about z, and rotors that turn faster than their links."""
    path = MODELS / "grbda" / f"{name}.urdf"
    model = pin.buildModelFromUrdf(str(path))
    robot = ElementTree.parse(path).getroot()

    def frame(end: ElementTree.Element) -> int:
        link = model.frames[model.getFrameId(end.get("link"))]
        origin = pin.SE3(np.eye(3), np.array(end.find("origin").get("xyz").split(), dtype=float))
        parent = getattr(link, "parentJoint", None) or link.parent
        return model.addFrame(
            pin.Frame(
                f"{end.tag} {model.nframes}",
                parent,
                link.placement * origin,
                pin.FrameType.OP_FRAME,
            )
        )

    pairs = [
        (frame(loop.find("predecessor")), frame(loop.find("successor")), 5)
        for loop in robot.findall("loop")
    ]
    child = {joint.find("child").get("link"): joint.get("name") for joint in robot.findall("joint")}
    couplings = robot.findall("coupling")
    gears = np.zeros((len(couplings), model.nv))
    for row, coupling in zip(gears, couplings, strict=True):
        link, rotor = (
            model.joints[model.getJointId(child[coupling.find(end).get("link")])].idx_v
            for end in ("predecessor", "successor")
        )
        row[rotor], row[link] = 1.0, -float(coupling.find("ratio").get("value"))
    return InPinocchio(model=model, pairs=pairs, gears=gears)


def split(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-inverse and null space of constraints that may be redundant; the rank where singular values drop."""
    U, s, Vt = np.linalg.svd(K)
    rank = int((s > RANK * s[0]).sum())
    return (Vt[:rank].T / s[:rank]) @ U[:, :rank].T, Vt[rank:].T


def constrained(M: np.ndarray, force: np.ndarray, K: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Accelerations a with K a = k and M a - force within the constraints' reach: Gauss's principle in the null space.

    Coordinates are scaled by their inertia, since a Delta's joint spheres have 1e-11 kg m^2 beside
    its links' 1e-6.
    """
    scale = 1 / np.sqrt(np.diag(M))
    inverse, Z = split(K * scale)
    particular = inverse @ k
    M_scaled = M * scale * scale[:, None]
    free = np.linalg.solve(Z.T @ M_scaled @ Z, Z.T @ (scale * force - M_scaled @ particular))
    return scale * (particular + Z @ free)


def compared(
    model: Model, other: InPinocchio, states: RandomStates, rng: np.random.Generator
) -> dict[str, float]:
    """Largest differences of forward and of hybrid inverse dynamics, relative to the largest value of each kind.

    Accelerations count with the root of their inertia: a Delta's joint spheres of 1e-11 kg m^2
    amplify by 1e7 what the axes of the file differ from parallel (3e-13), which leaves 4e-8 of the
    spheres' own accelerations open.
    """
    names, assembly = model.topology.velocity_names, model.assembly
    order, A = other.order(names), assembly.loops.transmission
    n = len(states.q)
    force = usual_forces(model, states, rng)
    forward = model.platform.forward_dynamics(
        states.position, states.velocity, force, start=states.q
    ).a
    entry = model.actuators.ports
    position, velocity = (
        entry.at(states.q),
        np.linalg.solve(entry.to_v, states.v[:, list(entry.v)].T).T,
    )
    wanted = rng.normal(size=(n, len(assembly.leading))) * np.abs(states.a).max()
    hybrid = model.hybrid.inverse_dynamics(position, velocity, wanted, start=states.q)
    settings: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {
        "forward": [],
        "force": [],
        "acceleration": [],
    }
    S = A[:, order].T
    for i in range(n):
        q = other.configuration(model.topology.coordinate_names, states.q[i])
        M, h, K, k = other.terms(q, states.v[i, order])
        expected = constrained(M, S @ force[i] - h, K, k)
        weight = np.sqrt(np.diag(M))
        settings["forward"].append((weight * expected, weight * forward[i, order]))
        # hybrid: the leading actuators' accelerations are given too; what holds them there are the
        # actuator forces
        lead = A[list(assembly.leading)][:, order]
        expected = constrained(M, -h, np.concatenate([K, lead]), np.concatenate([k, wanted[i]]))
        settings["acceleration"].append(
            (weight * expected, weight * np.asarray(hybrid.forces.state.a)[i, order])
        )
        _, Z = split(K)
        expected = np.linalg.lstsq(Z.T @ S, Z.T @ (M @ expected + h), rcond=None)[0]
        settings["force"].append((expected, hybrid.forces.force[i]))
    return {
        key: max(float(np.abs(x - y).max()) for x, y in pairs)
        / max(float(np.abs(x).max()) for x, _ in pairs)
        for key, pairs in settings.items()
    }


def usual_forces(model: Model, states: RandomStates, rng: np.random.Generator) -> np.ndarray:
    """Random actuator forces (N, n_u) of the size that random motions need."""
    entry, A = model.actuators.ports, model.assembly.loops.transmission
    velocity = np.linalg.solve(entry.to_v, states.v[:, list(entry.v)].T).T
    acceleration = states.a @ A[list(model.assembly.leading)].T
    needed = model.hybrid.inverse_dynamics(
        entry.at(states.q), velocity, acceleration, start=states.q
    ).forces.force
    return rng.normal(size=needed.shape) * np.abs(needed).max()


@pytest.mark.parametrize("name", GEPETTO)
def test_gepettos_models_assemble_and_are_counted(name: str) -> None:
    assembly = gepetto(name).assembly
    equations, rank, mobility, motors, passive = GEPETTO[name]
    assert assembly.residual < CLOSED
    assert assembly.findings == ()
    assert len(assembly.loops.names) == equations
    assert (assembly.rank, len(assembly.rows) + len(assembly.dropped)) == (rank, equations)
    assert (assembly.mobility, len(assembly.loops.mechanism.actuators)) == (mobility, motors)
    assert len(assembly.passive) == passive == mobility - assembly.actuator_rank
    assert len(assembly.independent) == mobility


@pytest.mark.parametrize("name", GEPETTO)
def test_gepettos_models_move_as_pinocchio_says(name: str) -> None:
    model, rng = gepetto(name), np.random.default_rng(4)
    states = random_states(model, STATES, rng)
    comparison = compared(model, gepetto_in_pinocchio(name), states, rng)
    assert max(comparison.values()) < PINOCCHIO, comparison


@functools.cache
def grbda(name: str) -> Model:
    return Model(load_urdf(MODELS / "grbda" / f"{name}.urdf", gravity=(0.0, 0.0, -9.81)))


@pytest.mark.parametrize("name", GRBDA)
def test_grbdas_models_assemble_and_move_as_pinocchio_says(name: str) -> None:
    model, rng = grbda(name), np.random.default_rng(6)
    assembly = model.assembly
    assert (len(assembly.loops.names), assembly.rank, assembly.mobility) == GRBDA[name]
    assert assembly.findings == ()
    states = random_states(model, STATES, rng)
    comparison = compared(model, grbda_in_pinocchio(name), states, rng)
    assert max(comparison.values()) < PINOCCHIO, comparison


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_a_neutral_pose_that_is_singular_is_left_and_says_so(name: str) -> None:
    """All links of the neutral pose lie in one line, where the linkage may fold either way."""
    assembly = grbda(name).assembly
    neutral = np.array([assembly.loops.topology.reference])
    phi, K = assembly.loops.residuals(neutral)
    assert np.abs(phi).max() < CLOSED
    assert np.linalg.matrix_rank(assembly.loops.scaled(K)[0], tol=RANK) == 1
    assert (
        np.linalg.matrix_rank(
            assembly.loops.scaled(assembly.loops.residuals(assembly.q[None])[1])[0], tol=1e-3
        )
        == 2
    )
    assert any("rank 1 at this pose and 2 around it" in note.what for note in assembly.notes)


@pytest.mark.parametrize("name", ["digit_like", "robot_delta"])
def test_spins_of_links_and_pins_are_found_and_locked(name: str) -> None:
    free = gepetto(name)
    spins = find_spins(free.assembly)
    assert {spin.name for spin in spins} == set(free.assembly.passive_names)
    locked = Model(free.mechanism)
    assert Model(free.mechanism, locks=Locks(spins=True)).assembly.locked == locked.assembly.locked
    assert locked.assembly.passive == ()
    assert (
        locked.assembly.mobility == locked.assembly.actuator_rank == len(free.mechanism.actuators)
    )
    names = [locked.topology.velocity_names[i] for i in locked.assembly.locked]
    assert set(names) == set(free.assembly.passive_names)
    if name == "digit_like":
        # its programs take seconds to build: the other machine's forces show what locking does
        return
    rng = np.random.default_rng(8)
    states = random_states(locked, STATES, rng)
    still = [locked.topology.velocity_names.index(name) for name in names]
    assert np.abs(states.v[:, still]).max() == 0.0
    other = gepetto_in_pinocchio(name)
    other.gears = np.eye(other.model.nv)[
        [other.order(locked.topology.velocity_names).index(i) for i in still]
    ]
    comparison = compared(locked, other, states, rng)
    assert max(comparison.values()) < PINOCCHIO, comparison


Solve = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def by_constraint_dynamics(other: InPinocchio) -> Solve:
    """Accelerations from q, v and forces by Pinocchio's own solver; a hinge is two points on its axis."""
    model, frames = other.model, other.model.frames
    along = pin.SE3(np.eye(3), np.array([0.0, 0.0, HINGE]))
    kinds = {
        3: pin.ContactType.CONTACT_3D,
        5: pin.ContactType.CONTACT_3D,
        6: pin.ContactType.CONTACT_6D,
    }
    constraints, inside = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    constraints.extend(
        pin.RigidConstraintModel(
            kinds[rows],
            model,
            frames[first].parentJoint,
            frames[first].placement * offset,
            frames[second].parentJoint,
            frames[second].placement * offset,
            pin.ReferenceFrame.LOCAL,
        )
        for first, second, rows in other.pairs
        for offset in ((pin.SE3.Identity(), along) if rows == 5 else (pin.SE3.Identity(),))
    )
    inside.extend(constraint.createData() for constraint in constraints)
    data = model.createData()
    pin.initConstraintDynamics(model, data, constraints, inside)
    settings = pin.ProximalSettings(1e-14, PROXIMAL, 50)
    return lambda q, v, tau: np.array(
        pin.constraintDynamics(model, data, q, v, tau, constraints, inside, settings)
    )


def by_mimics(other: InPinocchio) -> Solve:
    """The same of gears without loops: rotors mimic their links. Columns of M by `rnea`."""
    full, model = other.model, other.model
    scales = {}
    for row in other.gears:
        link, rotor = (
            int(np.flatnonzero(condition)[0])
            for condition in ((row != 0.0) & (row != 1.0), row == 1.0)
        )
        scales[rotor] = link, -row[link]
        model = pin.transformJointIntoMimic(
            model, *(_joint_of(full, i) for i in (link, rotor)), -row[link], 0.0
        )
    leading = [i for i in range(full.nv) if i not in scales]
    E = np.eye(full.nv)[:, leading]
    for rotor, (link, scale) in scales.items():
        E[rotor, leading.index(link)] = scale
    data, rest = model.createData(), np.zeros(model.nv)

    def solve(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        at = np.concatenate(
            [
                q[joint.idx_q : joint.idx_q + joint.nq]
                for joint in (full.joints[_joint_of(full, i)] for i in leading)
            ]
        )
        still = pin.rnea(model, data, at, rest, rest).copy()
        h = pin.rnea(model, data, at, v[leading], rest).copy()
        M = np.column_stack(
            [pin.rnea(model, data, at, rest, unit) - still for unit in np.eye(model.nv)]
        )
        return E @ np.linalg.solve(M, E.T @ tau - h)

    return solve


def _joint_of(model: Any, velocity: int) -> int:
    return next(i for i in range(1, model.njoints) if model.joints[i].idx_v == velocity)


@pytest.mark.parametrize("name", [*GEPETTO, *GRBDA])
def test_pinocchios_own_solver_moves_them_alike(name: str) -> None:
    """Nothing but Pinocchio's: its reader, its constraints, its solver; forces of hybrid inverse dynamics and others.

    What inverse dynamics gives must move the motors as asked, and passive freedoms as it says.
    Accelerations count with the root of their inertia, as in `compared`; as they are, robot_delta's
    differ by 1.6e-8 of the largest, in its joint spheres, since Pinocchio's solver takes all 18
    rows, which repeat each other to 1e-10 only: see below.
    """
    model, other = (
        (gepetto(name), gepetto_in_pinocchio(name))
        if name in GEPETTO
        else (grbda(name), grbda_in_pinocchio(name))
    )
    rng = np.random.default_rng(5)
    states = random_states(model, STATES, rng)
    solve = by_mimics(other) if len(other.gears) else by_constraint_dynamics(other)
    force = usual_forces(model, states, rng)
    forward = model.platform.forward_dynamics(
        states.position, states.velocity, force, start=states.q
    ).a
    entry, A = model.actuators.ports, model.assembly.loops.transmission
    velocity = np.linalg.solve(entry.to_v, states.v[:, list(entry.v)].T).T
    wanted = rng.normal(size=(STATES, len(model.assembly.leading))) * np.abs(states.a).max()
    hybrid = model.hybrid.inverse_dynamics(
        entry.at(states.q), velocity, wanted, start=states.q
    ).forces
    order = other.order(model.topology.velocity_names)
    for i in range(STATES):
        q, v = other.configuration(model.topology.coordinate_names, states.q[i]), states.v[i, order]
        weight = np.sqrt(np.diag(other.terms(q, v)[0]))
        for u, a in ((force[i], forward[i]), (hybrid.force[i], np.asarray(hybrid.state.a)[i])):
            result = solve(q, v, (A.T @ u)[order])
            scale = np.abs(weight * result).max()
            assert np.abs(weight * (result - a[order])).max() < PINOCCHIO * scale
        motors = A[list(model.assembly.leading)][:, order] @ result
        assert np.abs(motors - wanted[i]).max() < PINOCCHIO * np.abs(wanted[i]).max()


def test_redundant_welds_move_as_independent_rows_of_pinocchio_say() -> None:
    """robot_delta's accelerations as they are, not weighted: Pinocchio's M, h and nine of its eighteen rows.

    Which nine makes 1e-10 of difference (measured), since the others repeat them to 1e-10 only.
    """
    model, other, rng = (
        gepetto("robot_delta"),
        gepetto_in_pinocchio("robot_delta"),
        np.random.default_rng(5),
    )
    states = random_states(model, STATES, rng)
    force = usual_forces(model, states, rng)
    moved = model.platform.forward_dynamics(
        states.position, states.velocity, force, start=states.q
    ).a
    order, A = other.order(model.topology.velocity_names), model.assembly.loops.transmission
    for i in range(STATES):
        q = other.configuration(model.topology.coordinate_names, states.q[i])
        M, h, K, k = other.terms(q, states.v[i, order])
        rows = scipy.linalg.qr((K / np.sqrt(np.diag(M))).T, mode="r", pivoting=True)[1][
            : model.assembly.rank
        ]
        expected = constrained(M, (A.T @ force[i])[order] - h, K[rows], k[rows])
        assert np.abs(moved[i, order] - expected).max() < PINOCCHIO * np.abs(expected).max()


def test_welds_and_gears_are_verified_with_pinocchios_own_solver() -> None:
    """As `tauloop verify` does, which writes its own tree into Pinocchio."""
    for name in ("5bar_linkage_iso6d", "revolute_rotor_chain"):
        model = gepetto(name) if name in GEPETTO else grbda(name)
        comparison = check_with_engines(
            model.mechanism,
            STATES,
            np.random.default_rng(3),
            engines={"Pinocchio": pinocchio_engine},
        )
        methods = {row.quantity: row.method for row in comparison.comparisons}
        own = "mimic joints" if name == "revolute_rotor_chain" else "constraint solver"
        assert (methods[OWN_FORWARD], methods[OWN_INVERSE]) == (own, own)
        assert comparison.not_run == ()
        assert comparison.worst < PINOCCHIO
