"""All formulations give the same forces; their matrices are those of the papers and have the properties claimed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from core_machines import CORE_MACHINES
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation

from tauloop.common.errors import DescriptionError, InputError, PoseError
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.equations.formulations import (
    FORMULATIONS,
    NAMED_FORMULATIONS,
    NEWTON_EULER,
    Formulation,
    formulation_table,
)
from tauloop.equations.formulations.lagrange import koditschek_form
from tauloop.equations.topology import integrate, topology
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import Entries, Values, dynamic_parameters
from tauloop.formats import load
from tauloop.kinematics import random_states
from tauloop.kinematics.states import RandomStates
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import (
    BASE,
    Actuator,
    Body,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Platform,
    Rod,
    Telescope,
)
from tauloop.model import Model
from tauloop.model.forces.sampled_momenta import forces_from_momenta
from tauloop.model.platform_matrices import VirtualPlatforms
from tauloop.testing.machines import (
    inertia,
    mechanism,
    placement,
    planar_loop,
    serial_chain,
    six_legs,
    slender,
    vector,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formulations.md"

#: What the formulations must agree to, relative to the largest force (design, "Formulations");
#: rounding is near 1e-15.
AGREE = 1e-10
#: Central differences with step 1e-5 of functions of size one: truncation and rounding are both
#: near 1e-10.
DIFFERENCE, STEP = 1e-7, 1e-5
#: A second-order error falls to a quarter when the step is halved; what is left is of third and
#: fourth order.
HALVED = (3.6, 4.4)

OTHERS = FORMULATIONS[1:]
by_name = pytest.mark.parametrize("formulation", OTHERS, ids=lambda f: f.name)
seeds = st.integers(0, 2**32 - 1)
#: Each example builds the derivatives of a new machine.
few = settings(max_examples=8)


class Tree:
    """Equations of a machine's tree on symbols q, v, a, at nominal parameters."""

    def __init__(self, machine: Mechanism) -> None:
        self.mechanism = machine
        self.shape = topology(machine)
        self.values = Values(machine.parameters.values)
        self.q, self.v, self.a = (
            ca.SX.sym(*x) for x in (("q", self.shape.n_q), *((s, self.shape.n_v) for s in "va"))
        )
        self.motion: TreeMotion = tree_motion(
            self.shape, self.values, Configuration(self.q, {}), self.v, self.a
        )
        self.parameters = dynamic_parameters(machine, self.shape)
        self.nominal = np.array([machine.value(p.expression) for p in self.parameters])
        self.pi = ca.SX(ca.DM(self.nominal))
        self.entries = Entries(self.parameters, self.pi)

    def forces(self, formulation: Formulation, pi: ca.SX | None = None) -> ca.SX:
        pi = self.pi if pi is None else pi
        return formulation.forces(self.mechanism, self.motion, Entries(self.parameters, pi))

    def energy(self) -> ca.SX:
        arguments = (self.mechanism, self.motion, self.entries)
        return kinetic_energy(*arguments) + potential_energy(*arguments)

    def numbers(self, expression: ca.SX, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Values (N, rows, columns)."""
        function = ca.Function("f", [self.q, self.v, self.a], [ca.densify(expression)])
        rows, columns = expression.shape
        return np.asarray(function(q.T, v.T, a.T)).reshape(rows, len(q), columns).transpose(1, 0, 2)

    def random_state(
        self, rng: np.random.Generator, n: int = 5
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Any coordinates with unit quaternions, for trees without loops."""
        q = rng.normal(size=(n, self.shape.n_q))
        for start, _ in self.shape.quaternions:
            q[:, start : start + 4] /= np.linalg.norm(
                q[:, start : start + 4], axis=1, keepdims=True
            )
        return q, rng.normal(size=(n, self.shape.n_v)), rng.normal(size=(n, self.shape.n_v))


@functools.cache
def shipped(name: str) -> tuple[Model, RandomStates]:
    model = Model(load(name))
    return model, random_states(model, 6, np.random.default_rng(5))


def check_agreement(
    tree: Tree, formulation: Formulation, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> None:
    expected = tree.numbers(tree.forces(NEWTON_EULER), q, v, a)
    result = tree.numbers(tree.forces(formulation), q, v, a)
    assert np.abs(expected).max() > 0
    assert np.abs(result - expected).max() < AGREE * np.abs(expected).max()


@by_name
@pytest.mark.parametrize("name", CORE_MACHINES)
def test_formulations_agree_on_shipped_machines(name: str, formulation: Formulation) -> None:
    model, states = shipped(name)
    check_agreement(Tree(model.mechanism), formulation, states.q, states.v, states.a)


@pytest.mark.parametrize("kind", [six_legs, planar_loop, serial_chain])
def test_formulations_agree_on_random_machines(
    kind: Callable[[np.random.Generator], Mechanism],
) -> None:
    rng = np.random.default_rng(7)
    model = Model(kind(rng))
    states = random_states(model, 3, rng, step=0.02)
    for formulation in OTHERS:
        check_agreement(Tree(model.mechanism), formulation, states.q, states.v, states.a)


def ball_chain(rng: np.random.Generator) -> Mechanism:
    """Spherical joints, described from the base outwards and inwards, a free body after them, and friction on all.

    One motor drives two joints, with a rotor and friction of its own.
    """
    kinds = (
        ("spherical", False),
        ("revolute", True),
        ("spherical", True),
        ("free", False),
        ("universal", True),
    )
    joints, previous = [], BASE
    for i, (kind, is_reversed) in enumerate(kinds):
        body = f"link_{i}"
        ends = (placement(rng, previous), placement(rng, body))
        parent, child = ends[::-1] if is_reversed else ends
        axes = {"revolute": ("y",), "universal": ("z", "x")}.get(kind, ())
        joint = Joint(name=f"joint_{i}", kind=kind, parent=parent, child=child, axes=axes)
        viscous = Freedom(friction=Friction(viscous=Constant(0.4)), inertia=Constant(0.03))
        joints.append(replace(joint, freedoms=(viscous,) * len(joint.velocity_names)))
        previous = body
    return mechanism(
        bodies=tuple(Body(name=f"link_{i}", inertia=inertia(rng)) for i in range(len(kinds))),
        joints=tuple(joints),
        actuators=(
            Actuator(
                name="motor",
                drives=(("joint_1", Constant(2.0)), ("joint_4.first", Constant(-0.7))),
                inertia=Constant(0.2),
                friction=Friction(viscous=Constant(0.6), coulomb=Constant(0.3)),
            ),
        ),
        platform=Platform(body=previous, tool=Placement(body=previous), independent=("joint_1",)),
    )


@few
@given(seed=seeds)
def test_formulations_agree_on_angular_velocities(seed: int) -> None:
    """Poincare's term, on quaternions at any place of a chain and seen from either side."""
    rng = np.random.default_rng(seed)
    tree = Tree(ball_chain(rng))
    assert len(tree.shape.quaternions) == 3
    state = tree.random_state(rng)
    for formulation in OTHERS:
        check_agreement(tree, formulation, *state)


def carried_rod(rng: np.random.Generator, lower: Inertia, spin: str) -> Mechanism:
    """A telescopic rod between two free bodies: no loop equation limits its ends, only the length must be theirs."""
    return mechanism(
        bodies=tuple(Body(name=name, inertia=inertia(rng)) for name in ("cart", "plate")),
        joints=tuple(
            Joint(name=name, kind="free", parent=Placement(body=BASE), child=Placement(body=name))
            for name in ("cart", "plate")
        ),
        rods=(
            Rod(
                name="rod",
                start=placement(rng, "cart"),
                end=placement(rng, "plate"),
                telescope=Telescope(reference=1.0),
                lower=lower,
                upper=lower,
                spin=spin,  # type: ignore[arg-type]
                first_axis=vector(np.array([0.3, -0.2, 0.9])),
            ),
        ),
        actuators=(),
        platform=Platform(body="plate", tool=Placement(body="plate"), independent=("plate.x",)),
    )


def on_the_rod(tree: Tree, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random state with the telescope's length put right; its rates follow in the rod's equations by themselves."""
    q, v, a = tree.random_state(rng)
    (rod, iq, _), *_ = tree.shape.telescopes
    ends = [tree.motion.point(end).p for end in (rod.start, rod.end)]
    q[:, iq] = tree.numbers(ca.norm_2(ends[1] - ends[0]), q, v, a)[:, 0, 0]
    return q, v, a


AXIAL = Inertia(
    mass=Constant(2.0),
    first_moment=vector(np.array([0, 0, 0.7])),
    second_moment=tuple(Constant(x) for x in (0.4, 0.0, 0.4, 0.0, 0.0, 0.05)),  # type: ignore[arg-type]
)
OVAL = replace(AXIAL, second_moment=tuple(Constant(x) for x in (0.4, 0.02, 0.3, 0.0, 0.0, 0.05)))


@by_name
@pytest.mark.parametrize(
    ("lower", "spin"), [(AXIAL, "none"), (AXIAL, "universal"), (OVAL, "universal")]
)
def test_formulations_agree_on_full_rods(
    lower: Inertia, spin: str, formulation: Formulation
) -> None:
    rng = np.random.default_rng(8)
    tree = Tree(carried_rod(rng, lower, spin))
    check_agreement(tree, formulation, *on_the_rod(tree, rng))


def test_rods_without_energy_are_refused_by_name() -> None:
    tree = Tree(carried_rod(np.random.default_rng(8), OVAL, "none"))
    for name in ("lagrange", "hamilton"):
        with pytest.raises(
            DescriptionError, match=r"rod: .*differ by 0\.1 kg m\^2 \(of 0\.4\)"
        ) as caught:
            tree.forces(NAMED_FORMULATIONS[name])
        assert len(caught.value.problems) == 2  # both parts, at once
    # Without energies there are forces, but the inertia turns with the rod's frame and not with the
    # rod.
    state = on_the_rod(tree, np.random.default_rng(9))
    forces = [
        tree.numbers(tree.forces(NAMED_FORMULATIONS[n]), *state)
        for n in ("newton-euler", "generalized-momentum")
    ]
    assert np.abs(forces[0] - forces[1]).max() > 1e-3 * np.abs(forces[0]).max()


@by_name
@pytest.mark.parametrize("name", ["gantry_tau_5dof", "spidermill"])
def test_forces_are_linear_in_the_same_parameters(name: str, formulation: Formulation) -> None:
    """The regressors Y are equal, column by column: parameters that stand alone enter alike, not only their sum."""
    model, states = shipped(name)
    tree = Tree(model.mechanism)
    pi = ca.SX.sym("pi", len(tree.parameters))
    Y = [
        tree.numbers(ca.jacobian(tree.forces(f, pi), pi), states.q, states.v, states.a)
        for f in (NEWTON_EULER, formulation)
    ]
    assert np.abs(Y[1] - Y[0]).max() < AGREE * np.abs(Y[0]).max()
    by_default = tree.numbers(tree.forces(NEWTON_EULER), states.q, states.v, states.a)[:, :, 0]
    assert np.abs(Y[1] @ tree.nominal - by_default).max() < AGREE * np.abs(by_default).max()


@by_name
@pytest.mark.parametrize("name", ["nuwar", "rcid", "five_bar"])
def test_models_run_with_any_formulation(name: str, formulation: Formulation) -> None:
    """Through closed forms, whose angles are pairs of cosine and sine, to actuator forces and multipliers.

    Two leaf parameters stay symbols, which the derivatives must leave alone.
    """
    model, states = shipped(name)
    motion = (states.position, states.velocity, states.acceleration)
    expected = model.platform.inverse_dynamics(*motion, start=states.q)
    other = Model(
        load(name), free=model.mechanism.parameters.names[:2], formulation=formulation.name
    )
    forces = other.platform.inverse_dynamics(*motion, start=states.q)
    for a, b in ((forces.force, expected.force), (forces.closure_force, expected.closure_force)):
        assert np.abs(a - b).max() < AGREE * np.abs(b).max()
    Y = other.platform.regressor(*motion, start=states.q)
    assert np.abs(Y @ other.pi - expected.force).max() < AGREE * np.abs(expected.force).max()


def test_kinetic_energy_of_a_uniform_rod() -> None:
    """m (v_A.v_A + v_A.v_B + v_B.v_B) / 6, by hand, and m g times the height of its middle."""
    m, L = 0.8, 1.5
    part = replace(
        slender(np.random.default_rng(0), L),
        mass=Constant(m),
        first_moment=Constant(m * L / 2),
        second_moment=Constant(m * L**2 / 3),
    )
    ends = [Placement(body=name) for name in ("a", "b")]
    machine = mechanism(
        bodies=tuple(Body(name=name) for name in "ab"),
        joints=tuple(
            Joint(
                name=n, kind="translational", parent=Placement(body=BASE), child=Placement(body=n)
            )
            for n in "ab"
        ),
        rods=(Rod(name="rod", start=ends[0], end=ends[1], length=Constant(L), lower=part),),
        actuators=(),
        platform=Platform(body="b", tool=ends[1], independent=("b.x",)),
    )
    tree = Tree(machine)
    rng = np.random.default_rng(4)
    direction = rng.normal(size=3)
    A = rng.normal(size=3)
    q = np.concatenate([A, A + L * direction / np.linalg.norm(direction)])[None]
    v = rng.normal(size=(1, 6))
    a, b = v[0, :3], v[0, 3:]
    gravity = np.array([0.3, -0.4, -9.7])  # that of `random_machines.mechanism`
    expected = m * (a @ a + a @ b + b @ b) / 6 - m * gravity @ (q[0, :3] + q[0, 3:]) / 2
    assert tree.numbers(tree.energy(), q, v, v)[0, 0, 0] == pytest.approx(expected, rel=1e-14)


@few
@given(seed=seeds)
def test_power_of_tree_forces_is_the_change_of_energy(seed: int) -> None:
    """tau . v = dE/dt + losses for Newton-Euler, which knows no energies; springs, rotors and all joints included."""
    rng = np.random.default_rng(seed)
    tree = Tree(serial_chain(rng))
    q, v, a = tree.random_state(rng)
    losses = 0.3 * v * v + 0.2 * np.abs(v) + 0.1 * v  # friction of `serial_chain`
    forces = tree.numbers(tree.forces(NEWTON_EULER), q, v, a)[:, :, 0]

    def energy(t: float) -> np.ndarray:
        return tree.numbers(tree.energy(), q + t * v + t * t * a / 2, v + t * a, a)[:, 0, 0]

    change = (energy(STEP) - energy(-STEP)) / (2 * STEP)
    power = np.sum(forces * v - losses, axis=1)
    assert np.abs(power - change).max() < DIFFERENCE * 10 * (
        1 + np.abs(forces).max() * np.abs(v).max()
    )


@few
@given(kind=st.sampled_from([ball_chain, serial_chain]), seed=seeds)
def test_koditschek_form(kind: object, seed: int) -> None:
    """M symmetric and positive, M' - 2 V skew, and M a + V v + gravity the forces without friction."""
    rng = np.random.default_rng(seed)
    tree = Tree(kind(rng))  # type: ignore[operator]
    state = tree.random_state(rng)
    form = koditschek_form(tree.mechanism, tree.motion, tree.entries)
    M, M_rate, V = (tree.numbers(x, *state) for x in (form.M, form.M_rate, form.V))
    assert np.abs(M - M.transpose(0, 2, 1)).max() < AGREE * np.abs(M).max()
    assert np.linalg.eigvalsh(M).min() > 0
    skew = M_rate - 2 * V
    assert np.abs(skew + skew.transpose(0, 2, 1)).max() < AGREE * (1 + np.abs(V).max())
    # slides, or one turn, have no velocity terms
    assert np.abs(V).max() > 0 or sum(tree.shape.angular) < 2
    acceleration_part = tree.numbers(ca.jacobian(tree.forces(NEWTON_EULER), tree.a), *state)
    assert np.abs(M - acceleration_part).max() < AGREE * np.abs(M).max()


def inertial_forces(model: Model, states: RandomStates) -> np.ndarray:
    """What motion and gravity ask of the platform (N, m), friction and springs left out, by Newton-Euler."""
    motion = (states.position, states.velocity, states.acceleration)
    Y = model.platform.regressor(*motion, start=states.q)
    kept = [
        i
        for i, p in enumerate(model.parameters)
        if p.group == "inertia" or (p.group == "drive" and p.role == "inertia")
    ]
    J = model.platform.actuator_jacobian(states.position, start=states.q)
    return np.asarray(np.einsum("nui,nu->ni", J, Y[:, :, kept] @ model.pi[kept]))


def times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("n...ij,nj->n...i", matrices, vectors))


@pytest.mark.parametrize("name", ["nuwar", "rcid", "five_bar", "spidermill"])
def test_virtual_platforms_add_up(name: str) -> None:
    """M x'' + V x' + G over all inertias is the whole force; both forms have the same V x', inertia by inertia."""
    model, states = shipped(name)
    expected = inertial_forces(model, states)
    by_momentum = VirtualPlatforms(model)
    momentum = by_momentum(states.position, states.velocity, start=states.q)
    energy = VirtualPlatforms(model, by_momentum=False)(
        states.position, states.velocity, start=states.q
    )
    assert momentum.labels == energy.labels
    assert len(set(momentum.labels)) == len(momentum.labels)
    for matrices in (momentum, energy):
        M, V, G = matrices.total()
        result = times(M, states.acceleration) + times(V, states.velocity) + G
        assert np.abs(result - expected).max() < AGREE * np.abs(expected).max()
    size = np.abs(expected).max()
    assert np.abs(times(momentum.V - energy.V, states.velocity)).max() < AGREE * size
    assert np.abs(momentum.M - energy.M).max() < AGREE * np.abs(energy.M).max()
    assert np.abs(momentum.gravity - energy.gravity).max() < AGREE * size
    by_kind = sum(momentum.total(kind=kind)[1] for kind in ("platform", "body", "rod", "rotor"))
    assert np.abs(by_kind - momentum.total()[1]).max() < AGREE * (1 + np.abs(by_kind).max())
    single = by_momentum(states.position[0], states.velocity[0], start=states.q[0])
    assert np.array_equal(single.V, momentum.V[0])


@pytest.mark.parametrize("name", ["nuwar", "rcid"])
def test_reduced_koditschek_form_is_skew(name: str) -> None:
    """M_r' - 2 V_r is skew on the independent velocities too, with M_r' from differences along the motion."""
    model, states = shipped(name)
    matrices = VirtualPlatforms(model, by_momentum=False)
    V = matrices(states.position, states.velocity, start=states.q).V

    def mass(t: float) -> np.ndarray:
        q = integrate(model.topology, states.q, t * states.v)
        return matrices(model.platform_position(q), states.velocity, start=q).M

    M_rate = (mass(STEP) - mass(-STEP)) / (2 * STEP)
    skew = M_rate - 2 * V
    size = 1 + np.abs(V).max()
    assert np.abs(M_rate).max() > 1e3 * DIFFERENCE * size
    assert np.abs(skew + skew.swapaxes(-1, -2)).max() < DIFFERENCE * size


# The RCID paper's own equations in NumPy, from platform to links, with derivatives by complex
# steps.


def cross_matrix(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


class PaperRcid:
    """Equations of the RCID paper (signs as in machines.md, section 5) at one pose x = (p, psi, theta, phi)."""

    def __init__(self, mechanism: Mechanism, link: np.ndarray) -> None:
        """Geometry from the file; link: transverse inertias (about y_L and z_L) at the mass centre."""
        value = mechanism.parameters.values
        base, plate = (
            np.array([-1, 1, -1, 1, -1, 1]) * value["phi_B"],
            np.array([-1, 1, -1, 1, -1, 1]) * value["phi_P"],
        )
        at = np.radians([0, 120, 120, 240, 240, 360]), np.radians([60, 60, 180, 180, 300, 300])
        self.b = [value["base_radius"] * np.array([np.cos(g), np.sin(g), 0]) for g in at[0] - base]
        self.P = [
            value["plate_radius"] * np.array([np.cos(g), np.sin(g), 0]) for g in at[1] + plate
        ]
        self.L, self.m_L = value["link_length"], value["link_mass"]
        self.m_A, self.link = value["carriage_mass"], link
        plate_body = next(body for body in mechanism.bodies if body.name == "plate")
        numbers = [mechanism.value(e) for e in plate_body.inertia.parameters]  # type: ignore[union-attr]
        self.m_P, self.center = numbers[0], np.array(numbers[1:4]) / numbers[0]
        about = np.diag([numbers[4], numbers[6], numbers[9]])
        self.I_P = about + self.m_P * cross_matrix(self.center) @ cross_matrix(self.center)

    def parts(self, x: np.ndarray) -> dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]]:
        """(J, I) of every body on x' in Euler coordinates: velocity J x', momentum I J x'. Analytic in x."""
        p, (psi, theta, phi) = x[:3], x[3:]
        c, s = np.cos, np.sin
        Rz = np.array([[c(psi), -s(psi), 0], [s(psi), c(psi), 0], [0, 0, 1]])
        Ry = np.array([[c(theta), 0, s(theta)], [0, 1, 0], [-s(theta), 0, c(theta)]])
        Rx = np.array([[1, 0, 0], [0, c(phi), -s(phi)], [0, s(phi), c(phi)]])
        R = Rz @ Ry @ Rx
        J_A = np.array(
            [[0, -s(psi), c(psi) * c(theta)], [0, c(psi), s(psi) * c(theta)], [1, 0, -s(theta)]]
        )
        T = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), J_A]])
        ones, z = np.eye(3), np.array([0, 0, 1])
        r_P = R @ self.center
        settings: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = {
            ("platform", "translation"): [
                (np.hstack([ones, -cross_matrix(r_P)]) @ T, self.m_P * ones)
            ],
            ("platform", "rotation"): [(np.hstack([0 * ones, ones]) @ T, R @ self.I_P @ R.T)],
            ("body", "translation"): [],
            ("rod", "translation"): [],
            ("rod", "rotation"): [],
        }
        for b, P in zip(self.b, self.P, strict=True):
            r = R @ P
            e = p + r - b
            height = np.sqrt(self.L**2 - e[0] ** 2 - e[1] ** 2)
            a = np.array([e[0], e[1], height])  # e - l z
            J_C = np.concatenate([a, np.cross(r, a)]) / a[2]
            velocity = np.hstack([ones, -cross_matrix(r)])
            J_B = velocity / 2 + np.outer(z, J_C) / 2
            J_D = cross_matrix(a) @ (velocity - np.outer(z, J_C)) / self.L**2
            y_L = np.array([-a[1], a[0], 0]) / np.sqrt(a[0] ** 2 + a[1] ** 2)
            frame = np.column_stack([a / self.L, y_L, np.cross(a / self.L, y_L)])
            I_L = frame @ np.diag([0.0, *self.link]) @ frame.T
            settings["body", "translation"].append((np.outer(z, J_C) @ T, self.m_A * ones))
            settings["rod", "translation"].append((J_B @ T, self.m_L * ones))
            settings["rod", "rotation"].append((J_D @ T, I_L))
        return settings

    def matrices(
        self, x: np.ndarray, rate: np.ndarray
    ) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        """I(x) and V(x, x') x' of each group: J^T I J and J^T d(I J)/dt x', summed (eqs. 32 to 73)."""
        step = 1e-30  # a complex step has no rounding
        ahead = self.parts(x + 1j * step * rate)
        result = {}
        for key, parts in self.parts(x).items():
            m = sum(J.T @ I @ J for J, I in parts)
            later = [(I @ J).imag / step for J, I in ahead[key]]
            v = sum(J.T @ (P_rate @ rate) for (J, _), P_rate in zip(parts, later, strict=True))
            result[key] = np.asarray(m), np.asarray(v)
        return result


def full_links(machine: Mechanism, transverse: tuple[float, float]) -> Mechanism:
    """The RCID with links of given inertias across (x and y of the rod frame), that do not spin."""
    m, L = machine.parameters.values["link_mass"], machine.parameters.values["link_length"]
    I_x, I_y = (Constant(I + m * L * L / 4) for I in transverse)
    zero = Constant(0.0)
    link = Inertia(
        mass=Constant(m),
        first_moment=(zero, zero, Constant(m * L / 2)),
        second_moment=(I_x, zero, I_y, zero, zero, zero),
    )
    axis = vector(np.array([0, 0, 1.0]))
    rods = tuple(replace(rod, lower=link, spin="none", first_axis=axis) for rod in machine.rods)
    return replace(machine, rods=rods)


@pytest.mark.parametrize("links", ["slender", "unequal"])
def test_rcid_matrices_are_those_of_the_paper(links: str) -> None:
    """Inertia matrices and velocity terms in Euler coordinates, group by group, against the paper's equations."""
    machine = load("rcid")
    m, L = machine.parameters.values["link_mass"], machine.parameters.values["link_length"]
    transverse = np.full(2, m * L * L / 12) if links == "slender" else np.array([4e-5, 9e-5])
    if links == "unequal":
        # y_L is the rod frame's y, z_L its -x
        machine = full_links(machine, (transverse[1], transverse[0]))
    model = Model(machine)
    rng = np.random.default_rng(2)
    p = np.array([0, 0, model.assembly.q[2]]) + 0.004 * rng.normal(size=(4, 3))
    angles = 0.1 * rng.normal(size=(4, 3))
    rates = np.hstack([0.2 * rng.normal(size=(4, 3)), 2.0 * rng.normal(size=(4, 3))])
    rotation = Rotation.from_euler("ZYX", angles)
    paper = PaperRcid(machine, transverse)
    twist = np.array([euler_to_twist(*row) for row in zip(angles, rates, strict=True)])
    position = np.hstack([p, rotation.as_quat(scalar_first=True)])
    result = VirtualPlatforms(model, in_euler=True)(position, twist)
    assert result.velocity_names == ("x", "y", "z", "psi", "theta", "phi")
    for n in range(4):
        for (kind, part), (M, Vx) in paper.matrices(
            np.concatenate([p[n], angles[n]]), rates[n]
        ).items():
            M_total, V_total, _ = result.total(kind, part)
            assert np.abs(M_total[n] - M).max() < AGREE * np.abs(M).max()
            assert np.abs(V_total[n] @ rates[n] - Vx).max() < AGREE * np.abs(Vx).max()
    kinds = {label[1] for label in result.labels}
    assert kinds == {"platform", "body", "rod"}


def euler_to_twist(angles: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """(v, w) from the rates of (x, y, z, psi, theta, phi)."""
    psi, theta, _ = angles
    turned_y = np.array([-np.sin(psi), np.cos(psi), 0])
    turned_x = np.array([np.cos(psi) * np.cos(theta), np.sin(psi) * np.cos(theta), -np.sin(theta)])
    w = rates[3] * np.array([0, 0, 1]) + rates[4] * turned_y + rates[5] * turned_x
    return np.concatenate([rates[:3], w])


def test_gravity_in_euler_coordinates_is_the_gradient_of_the_potential() -> None:
    """Eqs. 75 to 77: by differences of m g z_c of all bodies, at poses on both sides."""
    model, _ = shipped("rcid")
    x = np.array([0.003, -0.002, model.assembly.q[2] + 0.004, 0.1, -0.15, 0.2])
    paper = PaperRcid(model.mechanism, np.zeros(2))

    def potential(x: np.ndarray) -> float:
        R = Rotation.from_euler("ZYX", x[3:]).as_matrix()
        height = paper.m_P * (x[2] + (R @ paper.center)[2])
        for b, P in zip(paper.b, paper.P, strict=True):
            e = x[:3] + R @ P - b
            l = e[2] - np.sqrt(paper.L**2 - e[0] ** 2 - e[1] ** 2)
            height += paper.m_A * l + paper.m_L * (e[2] + l) / 2
        return float(9.81 * height)

    expected = [(potential(x + STEP * e) - potential(x - STEP * e)) / (2 * STEP) for e in np.eye(6)]
    position = np.concatenate([x[:3], Rotation.from_euler("ZYX", x[3:]).as_quat(scalar_first=True)])
    result = VirtualPlatforms(model, in_euler=True)(position, np.zeros(6))
    assert np.abs(result.total()[2] - expected).max() < DIFFERENCE * np.abs(expected).max()


def test_euler_angles_need_a_free_platform() -> None:
    model, _ = shipped("nuwar")
    with pytest.raises(
        InputError, match=r"six independent degrees of freedom; this platform has .*x, .*z"
    ):
        VirtualPlatforms(model, in_euler=True)


def test_euler_angles_are_refused_where_they_are_singular() -> None:
    """At theta = 90 degrees the platform itself is well: only its Euler coordinates are not."""
    model, _ = shipped("hexapod")
    position = np.stack([model.platform_position(model.assembly.q)] * 2)
    position[1, 3:] = Rotation.from_euler("ZYX", [0, np.pi / 2, 0]).as_quat(scalar_first=True)
    rest = np.zeros((2, 6))
    with pytest.raises(
        PoseError, match=r"theta is \+-90 degrees.* 1 of 2 samples \(the first is sample 1\)"
    ):
        VirtualPlatforms(model, in_euler=True)(position, rest)
    assert np.isfinite(VirtualPlatforms(model)(position, rest).V).all()


# Hamilton's equations on sampled motion.


def sampled_motion(model: Model, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A smooth motion about the reference: translations, and a rotation about a fixed axis where there is one."""
    start = model.platform_position(model.assembly.q)
    amplitude, frequency, phase = 0.004, np.array([7.0, 9.0, 11.0]), np.array([0.3, 1.1, 2.0])
    angle = frequency * time[:, None] + phase
    p = start[:3] + amplitude * np.sin(angle)
    v, a = amplitude * frequency * np.cos(angle), -amplitude * frequency**2 * np.sin(angle)
    if len(start) == 3:
        return p, v, a
    axis = np.array([0.6, 0.0, 0.8])
    turn = 0.05 * np.array([np.sin(8 * time), 8 * np.cos(8 * time), -64 * np.sin(8 * time)])
    quaternion = np.column_stack([np.cos(turn[0] / 2), np.outer(np.sin(turn[0] / 2), axis)])
    return (
        np.hstack([p, quaternion]),
        np.hstack([v, np.outer(turn[1], axis)]),
        np.hstack([a, np.outer(turn[2], axis)]),
    )


@pytest.mark.parametrize("name", ["nuwar", "rcid", "hexapod"])
def test_sampled_momenta_are_second_order_in_the_step(name: str) -> None:
    """Each halving leaves a quarter of the error, at the ends too, and no acceleration is given."""
    model, _ = shipped(name)
    errors = []
    for n in (101, 201, 401):
        time = np.linspace(0.0, 0.4, n)
        position, velocity, acceleration = sampled_motion(model, time)
        exact = model.platform.inverse_dynamics(position, velocity, acceleration)
        result = forces_from_momenta(model.platform, time, position, velocity)
        assert result.state.a is None
        error = np.abs(result.force - exact.force)
        errors.append(
            (
                error[[0, -1]].max(),
                error[1:-1].max(),
                np.abs(result.closure_force - exact.closure_force).max(),
            )
        )
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert HALVED[0] < ratios.min()
    assert ratios.max() < HALVED[1]


def test_sampled_momenta_refuse_times_out_of_order() -> None:
    model, _ = shipped("nuwar")
    position, velocity, _ = sampled_motion(model, np.linspace(0, 0.1, 5))
    for time in (np.array([0, 1, 2, 2, 3.0]), np.array([0, 1, 2, np.nan, 4]), np.arange(4.0)):
        with pytest.raises(InputError, match="increasing times"):
            forces_from_momenta(model.platform, time, position, velocity)
    with pytest.raises(InputError, match="at least 3"):
        forces_from_momenta(model.platform, np.arange(2.0), position[:2], velocity[:2])


# The list of formulations.


def test_formulations_are_found_by_name() -> None:
    assert len({f.name for f in FORMULATIONS}) == len(FORMULATIONS)
    assert [NAMED_FORMULATIONS[f.name] for f in FORMULATIONS] == list(FORMULATIONS)
    with pytest.raises(InputError, match=r"'hamiltn' is unknown(.|\n)*did you mean hamilton"):
        NAMED_FORMULATIONS.lookup("hamiltn", "formulation")
    with pytest.raises(InputError, match=r"'kane' is unknown") as caught:
        NAMED_FORMULATIONS.lookup("kane", "formulation")
    assert all(f.name in str(caught.value) for f in FORMULATIONS)
    with pytest.raises(InputError, match="formulation"):
        Model(load("four_bar"), formulation="kane")


def test_documentation_shows_the_same_table() -> None:
    start, end = (
        f"<!-- generated from formulations/__init__.py: {word} -->" for word in ("start", "end")
    )
    table = PAGE.read_text(encoding="utf-8").split(start)[1].split(end)[0].strip()
    assert table == formulation_table()


@by_name
def test_an_inertia_on_one_angular_velocity_resists_its_rate_alone(
    formulation: Formulation,
) -> None:
    """It is no body's: Poincaré's term of its momentum made forces on the other two."""
    machine = six_legs(np.random.default_rng(3))
    freedoms = tuple(Freedom(inertia=Constant(0.4) if i == 5 else None) for i in range(6))
    joints = tuple(
        replace(joint, freedoms=freedoms) if joint.kind == "free" else joint
        for joint in machine.joints
    )
    machine = replace(machine, joints=joints)
    model, other = Model(machine), Model(machine, formulation=formulation)
    states = random_states(model, 3, np.random.default_rng(1))
    motion = states.position, states.velocity, states.acceleration
    forces, expected = (
        chosen.platform.inverse_dynamics(*motion, start=states.q).force for chosen in (other, model)
    )
    assert forces == pytest.approx(expected, rel=0, abs=AGREE * np.abs(expected).max())
