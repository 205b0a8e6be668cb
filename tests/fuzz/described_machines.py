"""Random small machines with whatever a machine file can hold, for round trips through other formats.

A tree of random joints comes first. Loops are closed where the tree is at its start: by joints of
every kind, by rods and by couplings. Then motors, losses, springs and rotors are put on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.formats import dumps, loads
from tauloop.formats.imported.linkage import Linkage
from tauloop.mechanism.description.placements import turns_to_axes
from tauloop.mechanism.expression import ONE, Constant
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    Actuator,
    AxisName,
    Body,
    CombinedFriction,
    Coupling,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Platform,
    Rod,
    SlenderPart,
    Spring,
    Telescope,
    Tension,
    Turn,
)
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.mechanism.solids.primitives import joint_pose
from tauloop.model import Model
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

#: Kinds of joints in trees, the frequent ones several times.
TREE_KINDS = (
    *("revolute",) * 4,
    *("prismatic",) * 2,
    *(
        "cylindrical",
        "universal",
        "spherical",
        "planar",
        "translational",
        "schoenflies",
        "free",
        "fixed",
    ),
)
#: Kinds of joints that close loops.
CLOSING_KINDS = (
    "spherical",
    "revolute",
    "universal",
    "cylindrical",
    "prismatic",
    "planar",
    "fixed",
)
#: Kinds of joints that lie in the x-y plane, by the letter of their axis.
PLANE_AXES = {"revolute": "z", "prismatic": "x"}
#: Directions in which the base of a machine is turned, so that some are along axes.
_LETTERS: tuple[AxisName, ...] = ("x", "y", "z")


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Return true with a probability."""
    return bool(rng.random() < probability)


def constant(rng: np.random.Generator, low: float, high: float) -> Constant:
    """Return a constant between two numbers."""
    return Constant(float(rng.uniform(low, high)))


def friction(rng: np.random.Generator) -> Friction:
    """Return a friction law with some of its terms."""
    law = Friction(viscous=constant(rng, 0.1, 1.0))
    if chance(rng, 0.5):
        law = replace(law, coulomb=constant(rng, 0.1, 1.0))
    if chance(rng, 0.3):
        law = replace(law, offset=constant(rng, -0.5, 0.5))
    if chance(rng, 0.1):
        law = replace(law, viscous_asymmetry=constant(rng, -0.05, 0.05))
    if chance(rng, 0.1) and law.coulomb is not None:
        static = Constant(law.coulomb.value + float(rng.uniform(0.1, 0.5)))  # type: ignore[attr-defined]
        law = replace(law, static=static, stribeck=constant(rng, 0.01, 0.1))
    return law


def freedom(rng: np.random.Generator, start: float) -> Freedom:
    """Return what acts on a scalar freedom; mostly little."""
    made = Freedom()
    if chance(rng, 0.25):
        made = replace(made, friction=friction(rng))
    if chance(rng, 0.2):
        made = replace(
            made, spring=Spring(stiffness=constant(rng, 1.0, 20.0), rest=constant(rng, -0.3, 0.3))
        )
    if chance(rng, 0.2):
        made = replace(made, inertia=constant(rng, 0.01, 0.1))
    if chance(rng, 0.3):
        made = replace(
            made,
            lower=start - float(rng.uniform(1.0, 2.0)),
            upper=start + float(rng.uniform(1.0, 2.0)),
        )
        if chance(rng, 0.2):
            made = replace(made, upper=np.inf)
        if chance(rng, 0.2):
            made = replace(made, limit="drawing")
    if chance(rng, 0.2):
        made = replace(made, speed=float(rng.uniform(1.0, 5.0)))
    return made


def ball_freedom(rng: np.random.Generator) -> Freedom:
    """Return what acts on the rotations of a ball; often nothing."""
    return (
        Freedom(friction=Friction(viscous=constant(rng, 0.1, 1.0)))
        if chance(rng, 0.2)
        else Freedom()
    )


def frame_at(body: str, pose: FramePose) -> Placement:
    """Return the frame of a pose on a body."""
    turns = turns_to_axes(pose.rotation[:, 0].tolist(), pose.rotation[:, 1].tolist())
    return Placement(body=body, position=vector(pose.position), turns=turns)


def start_of(rng: np.random.Generator, kind: str) -> tuple[float, ...]:
    """Return start values of a joint's coordinates; zeros in part of the cases."""
    neutral = np.array(JOINT_KINDS[kind].neutral)
    if chance(rng, 0.25):
        return tuple(neutral.tolist())
    count = len(neutral) - 4 * ("qw" in JOINT_KINDS[kind].coordinates)
    values = rng.uniform(-0.5, 0.5, size=count)
    ball = rng.normal(size=4 * (count < len(neutral))) * 0.3
    if ball.size:
        ball[0] = 1.0
        ball /= np.linalg.norm(ball)
    return (*values.tolist(), *ball.tolist())


def joint_between(
    rng: np.random.Generator, name: str, kind: str, parent: Placement, child: Placement
) -> Joint:
    """Return a joint with random axes, start values and freedoms."""
    axes: tuple[AxisName, ...] = tuple(
        str(x) for x in rng.permutation(_LETTERS)[: JOINT_KINDS[kind].axes]
    )  # type: ignore[misc]
    start = start_of(rng, kind)
    balls = "qw" in JOINT_KINDS[kind].coordinates
    scalars = JOINT_KINDS[kind].velocities[: -3 if balls else None]
    freedoms = [freedom(rng, start[k]) for k in range(len(scalars))]
    freedoms += [ball_freedom(rng)] * 3 * balls
    if all(item == Freedom() for item in freedoms):
        freedoms = []
    return Joint(
        name=name,
        kind=kind,
        parent=parent,
        child=child,
        axes=axes,
        reference=start,
        freedoms=tuple(freedoms),
    )


def random_tree(rng: np.random.Generator) -> Mechanism:
    """Return a tree of two to five bodies on joints of all kinds; some bodies massless or welded on."""
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k in range(int(rng.integers(2, 6))):
        name = f"link{k}" if chance(rng, 0.8) else f"leg{k}.arm"
        near = (
            BASE
            if not bodies or chance(rng, 0.2)
            else str(rng.choice([body.name for body in bodies]))
        )
        kind = str(rng.choice(TREE_KINDS))
        parent = placement(rng, near) if chance(rng, 0.8) else Placement(body=near)
        child = placement(rng, name) if chance(rng, 0.6) else Placement(body=name)
        if JOINT_KINDS[kind].reversible and chance(rng, 0.25):
            parent, child = child, parent
        joints.append(
            joint_between(
                rng, f"joint{k}" if chance(rng, 0.9) else f"{name}.pin", kind, parent, child
            )
        )
        has_mass = kind != "fixed" or chance(rng, 0.5)
        bodies.append(Body(name=name, inertia=inertia(rng) if has_mass else None))
    platform = Platform(body=bodies[-1].name, tool=placement(rng, bodies[-1].name))
    return mechanism(bodies=tuple(bodies), joints=tuple(joints), platform=platform)


def plane_tree(rng: np.random.Generator) -> Mechanism:
    """Return a tree of bodies that move in one plane, which may be slanted."""
    tilt = Placement(
        body=BASE, position=vector(0.2 * rng.normal(size=3)), turns=placement(rng, BASE).turns
    )
    if chance(rng, 0.5):
        tilt = Placement(body=BASE)
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k in range(int(rng.integers(3, 6))):
        name = f"bar{k}"
        near = BASE if not bodies or chance(rng, 0.3) else bodies[-1].name
        base = tilt if near == BASE else Placement(body=near)
        at = vector(np.array([*rng.uniform(-0.5, 0.5, size=2), 0.0]))
        turn = (Turn("z", constant(rng, -1.0, 1.0)),)
        inner = frame_at(
            near,
            placement_pose(_EMPTY, base)
            @ placement_pose(_EMPTY, Placement(body=near, position=at, turns=turn)),
        )
        kind = "prismatic" if chance(rng, 0.2) else "revolute"
        letter: AxisName = "x" if kind == "prismatic" else "z"
        start = float(rng.uniform(-0.5, 0.5))
        joints.append(
            Joint(
                name=f"{name}.pin",
                kind=kind,
                parent=inner,
                child=Placement(body=name),
                axes=(letter,),
                reference=(start,),
                freedoms=(freedom(rng, start),) if chance(rng, 0.5) else (),
            )
        )
        bodies.append(Body(name=name, inertia=inertia(rng)))
    platform = Platform(body=bodies[-1].name, tool=placement(rng, bodies[-1].name))
    return mechanism(bodies=tuple(bodies), joints=tuple(joints), platform=platform)


_EMPTY = mechanism(bodies=(), joints=(), platform=Platform(body=BASE, tool=Placement(body=BASE)))


def freedoms_of(machine: Mechanism) -> int:
    """Return the number of freedoms of the joints that are not cut."""
    return sum(len(joint.velocity_names) for joint in machine.joints)


def closed(
    rng: np.random.Generator, machine: Mechanism, kind: str, *, in_plane: bool = False
) -> Mechanism:
    """Return the machine with one more joint, between two of its bodies as they are at the start."""
    names = [BASE, *(body.name for body in machine.bodies)]
    first, second = (str(name) for name in rng.permutation(names)[:2])
    poses = Linkage(machine).world
    if in_plane:
        # frames of the plane's own directions; a pin's axis is its z
        flat = Placement(
            body=first, position=vector(np.array([*rng.uniform(-0.4, 0.4, size=2), 0.0]))
        )
        parent = frame_at(
            first,
            poses[first].inverse() @ _plane_of(machine, poses) @ placement_pose(machine, flat),
        )
        axes: tuple[AxisName, ...] = {"prismatic": ("x",), "universal": ("z", "x")}.get(
            kind, ("z",)
        )[  # type: ignore[assignment]
            : JOINT_KINDS[kind].axes
        ]
        joint = Joint(
            name="closing", kind=kind, parent=parent, child=Placement(body=second), axes=axes
        )
    else:
        parent = placement(rng, first)
        joint = joint_between(rng, "closing", kind, parent, Placement(body=second))
    count = sum(other.name.startswith("closing") for other in machine.joints)
    there = poses[first] @ placement_pose(machine, parent) @ joint_pose(joint)
    freedoms = joint.freedoms if chance(rng, 0.3) else ()
    joint = replace(
        joint,
        name=f"closing{count}",
        child=frame_at(second, poses[second].inverse() @ there),
        freedoms=freedoms,
        is_cut=not freedoms and chance(rng, 0.3),
    )
    return replace(machine, joints=(*machine.joints, joint))


def _plane_of(machine: Mechanism, poses: dict[str, FramePose]) -> FramePose:
    """Return the pose of the plane in which the bodies of `plane_tree` move."""
    first = machine.joints[0]
    return poses[first.parent.body] @ placement_pose(machine, first.parent)


def with_rod(rng: np.random.Generator, machine: Mechanism) -> Mechanism:
    """Return the machine with one more rod, between points of two of its bodies as they are at the start."""
    names = [BASE, *(body.name for body in machine.bodies)]
    first, second = (placement(rng, str(name)) for name in rng.permutation(names)[:2])
    poses = Linkage(machine).world
    ends = [(poses[end.body] @ placement_pose(machine, end)).position for end in (first, second)]
    length = float(np.linalg.norm(ends[1] - ends[0]))
    if length < 0.1:
        return machine
    is_telescopic, is_full = chance(rng, 0.5), chance(rng, 0.4)

    def part(sign: float) -> SlenderPart | Inertia | None:
        if is_full:
            return inertia(rng, 0.7, np.array([0.01, -0.02, sign * 0.3 * length]))
        return slender(rng, length) if chance(rng, 0.8) else None

    plain = (
        Freedom(lower=0.5 * length, upper=1.5 * length)
        if chance(rng, 0.5)
        else Freedom(inertia=Constant(0.2))
    )
    lower, upper = part(1.0), part(-1.0)
    rod = Rod(
        name=f"rod{len(machine.rods)}",
        start=first,
        end=second,
        length=None if is_telescopic else Constant(length),
        telescope=Telescope(reference=length, freedom=plain) if is_telescopic else None,
        lower=lower,
        upper=upper if is_telescopic else None,
        spin="universal" if is_full else "none",
        first_axis=vector(_across(rng, ends[1] - ends[0], poses[first.body])) if is_full else None,
    )
    if is_telescopic and not is_full and chance(rng, 0.15):
        rod = replace(rod, lower=None, upper=None, tension=Tension(least=1.0, greatest=200.0))
    return replace(machine, rods=(*machine.rods, rod))


def _across(rng: np.random.Generator, along: np.ndarray, body: FramePose) -> np.ndarray:
    """Return a direction on a body that is far from the rod's."""
    axis = np.cross(along, rng.normal(size=3)) + 0.2 * along
    return body.rotation.T @ axis / np.linalg.norm(axis)


def scalars(machine: Mechanism) -> dict[str, tuple[float, bool]]:
    """Return start value and whether it turns of each scalar coordinate in the tree, by name."""
    values: dict[str, tuple[float, bool]] = {}
    for joint in machine.joints:
        kind = JOINT_KINDS[joint.kind]
        names = joint.velocity_names
        for k, name in enumerate(names):
            if (
                k < len(joint.coordinate_names)
                and joint.coordinate_names[k] == name
                and not joint.is_cut
            ):
                values[name] = (joint.reference[k] if joint.reference else 0.0, kind.angular[k])
    for rod in machine.rods:
        if rod.telescope is not None:
            values[rod.name] = (rod.telescope.reference, False)
    return values


def ratios(
    rng: np.random.Generator, names: list[str], count: int
) -> tuple[tuple[str, Constant], ...]:
    """Return some coordinates with ratios."""
    chosen = [str(name) for name in rng.permutation(names)[:count]]
    signs = rng.choice([-1.0, 1.0], size=count)
    return tuple(
        (name, Constant(float(sign * rng.uniform(0.5, 3.0))))
        for name, sign in zip(chosen, signs, strict=False)
    )


def with_coupling(rng: np.random.Generator, machine: Mechanism) -> Mechanism:
    """Return the machine with a gear between two or three of its coordinates, which holds at the start."""
    values = scalars(machine)
    if len(values) < 3:
        return machine
    terms = ratios(rng, list(values), 2 if chance(rng, 0.7) else 3)
    offset = sum(ratio.value * values[name][0] for name, ratio in terms)
    gear = Coupling(
        name=f"gear{len(machine.couplings)}",
        terms=terms,
        offset=Constant(float(offset)),
        is_angular=values[terms[0][0]][1],
    )
    return replace(machine, couplings=(*machine.couplings, gear))


def with_motors(rng: np.random.Generator, machine: Mechanism, mobility: int) -> Mechanism:
    """Return the machine with about as many motors as freedoms, some on several coordinates."""
    values = scalars(machine)
    if not values:
        return machine
    count = min(max(1, mobility + int(rng.integers(-1, 2))), len(values))
    names = [str(name) for name in rng.permutation(list(values))]
    rods = {rod.name for rod in machine.rods}
    motors = []
    for k in range(count):
        terms: tuple[tuple[str, Constant], ...] = ((names[k], ONE),)
        if chance(rng, 0.4):
            terms = ((names[k], constant(rng, 0.5, 20.0)),)
        alike = [
            name for name in names if name != names[k] and values[name][1] == values[names[k]][1]
        ]
        if chance(rng, 0.2) and alike:
            terms = (*terms, (alike[0], constant(rng, -3.0, -0.5)))
        motor = Actuator(name=f"motor{k}", drives=terms)
        if chance(rng, 0.4):
            motor = replace(motor, inertia=constant(rng, 0.001, 0.02))
        if chance(rng, 0.4):
            motor = replace(motor, friction=friction(rng))
        if (
            motor.inertia is None
            and motor.friction is None
            and terms[0][0] not in rods
            and chance(rng, 0.5)
        ):
            motor = replace(motor, name=terms[0][0])
        if chance(rng, 0.3):
            motor = replace(
                motor, force=float(rng.uniform(10, 100)), speed=float(rng.uniform(1, 10))
            )
        if chance(rng, 0.1):
            motor = replace(motor, rated_force=5.0, copper_loss=0.1)
        motors.append(motor)
    return replace(machine, actuators=tuple(motors))


def with_losses(rng: np.random.Generator, machine: Mechanism) -> Mechanism:
    """Return the machine with friction of a combination of coordinates."""
    values = scalars(machine)
    terms = ratios(rng, list(values), 2)
    if len(terms) < 2:
        return machine
    loss = CombinedFriction(
        name="belt", terms=terms, friction=friction(rng), is_angular=values[terms[0][0]][1]
    )
    return replace(machine, losses=(loss,))


def tree_machine(rng: np.random.Generator) -> Mechanism:
    """Return a tree, with gears in part of the cases."""
    machine = random_tree(rng)
    return with_coupling(rng, machine) if chance(rng, 0.4) else machine


def loop_machine(rng: np.random.Generator) -> Mechanism:
    """Return a tree with enough freedoms that some are left when one or two loops are closed."""
    machine = random_tree(rng)
    for _ in range(int(rng.integers(1, 3))):
        spare = freedoms_of(machine) - 6 * sum(
            joint.name.startswith("closing") for joint in machine.joints
        )
        kinds = [kind for kind in CLOSING_KINDS if 6 - len(JOINT_KINDS[kind].velocities) < spare]
        if kinds:
            machine = closed(rng, machine, str(rng.choice(kinds)))
    return machine


def plane_machine(rng: np.random.Generator) -> Mechanism:
    """Return a planar linkage of one or two loops, whose spatial rows are redundant."""
    machine = plane_tree(rng)
    for _ in range(int(rng.integers(1, 3))):
        if freedoms_of(machine) > 2:
            kind = str(
                rng.choice(
                    ("revolute", "revolute", "spherical", "prismatic", "cylindrical", "planar")
                )
            )
            machine = closed(rng, machine, kind, in_plane=True)
    return with_coupling(rng, machine) if chance(rng, 0.2) else machine


def rod_machine(rng: np.random.Generator) -> Mechanism:
    """Return a tree on rods of every kind."""
    machine = random_tree(rng)
    for _ in range(int(rng.integers(1, 4))):
        if freedoms_of(machine) > len(machine.rods) + 1:
            machine = with_rod(rng, machine)
    return machine


FAMILIES: tuple[Callable[[np.random.Generator], Mechanism], ...] = (
    *(tree_machine, loop_machine, plane_machine, rod_machine) * 2,
    serial_chain,
    six_legs,
    planar_loop,
)
#: Families whose machines come with their motors.
_COMPLETE = (serial_chain, six_legs, planar_loop)


def described_machine(seed: int) -> Mechanism:
    """Return the machine of a seed, as its machine file is read.

    Raises:
        TauloopError: the tree and its loops do not make a machine; the next seed may.
    """
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    machine = family(rng)
    if family not in _COMPLETE:
        assembly = Model(machine, evaluator=Interpreted()).assembly
        machine = with_motors(rng, machine, assembly.mobility)
        if chance(rng, 0.15):
            machine = with_losses(rng, machine)
        names = tuple(assembly.topology.velocity_names[i] for i in assembly.independent)
        machine = replace(machine, platform=replace(machine.platform, independent=names))
        if chance(rng, 0.1):
            machine = replace(
                machine, platform=replace(machine.platform, payload=float(rng.uniform(0.1, 2.0)))
            )
    machine = replace(machine, name=f"machine{seed}")
    return loads(dumps(machine))
