"""Pinocchio in C++: `pinocchio_peer.cpp` built against the headers in the `pin` wheel, run on one machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from peers.bodies import PeerTree
from peers.cache import NotBuilt, built
from peers.computer import compiler_version, processor
from peers.pinocchio_joints import (
    COORDINATES,
    PinJoints,
    PinRegressor,
    pin_joints,
    pin_loads,
    pin_states,
)
from peers.states import NotComparable, PeerStates
from tauloop.mechanism.poses import Array, FramePose

SOURCE = Path(__file__).with_name("pinocchio_peer.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-w")
#: Definitions of the wheel's own CMake files.
DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CppResult:
    """Results of the program.

    Attributes:
        version, eigen: of the libraries.
        rnea, inverse: seconds for a state, of the tree's forces alone and of whole inverse
            dynamics.
        forces: actuator forces (N, n_u).
        forward: seconds for a state of `constraintDynamics`; None where it does not apply.
        forward_error: largest difference of its accelerations from those of the states, as a share
            of the largest.
    """

    version: str
    eigen: str
    rnea: float
    inverse: float
    forces: Array
    forward: float | None
    forward_error: float | None


def program() -> Path:
    """Return the program, built if necessary (one to two minutes, once per computer and versions).

    Raises:
        NotBuilt: no compiler, no headers, or an error of the compiler.
    """
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise NotBuilt("there is no C++ compiler (c++, g++ or clang++)")
    folders = (
        _headers("libpinocchio", "pinocchio/config.hpp"),
        _headers("cmeel-boost", "boost/version.hpp"),
        _headers("cmeel-eigen", "eigen3/Eigen/Core") / "eigen3",
    )
    includes = [part for folder in dict.fromkeys(folders) for part in ("-isystem", str(folder))]
    versions = [
        f"{name} {metadata.version(name)}"
        for name in ("libpinocchio", "cmeel-boost", "cmeel-eigen")
    ]
    salt = "; ".join(
        [compiler_version(compiler), processor().name, *processor().features, *versions]
    )
    return built("pinocchio_peer", [compiler, *FLAGS, *DEFINITIONS, *includes], SOURCE, salt)


def program_or_reason(is_left_out: bool) -> Path | str:
    """Return the program, or the reason why there is none."""
    try:
        return "switched off" if is_left_out else program()
    except NotBuilt as error:
        return str(error)


def version() -> str:
    """Return the version of the headers."""
    return metadata.version("libpinocchio")


def _headers(distribution: str, header: str) -> Path:
    """Return the include folder of an installed distribution that holds a header."""
    try:
        files = metadata.files(distribution) or ()
    except metadata.PackageNotFoundError:
        raise NotBuilt(f"{distribution} is not installed (pip install {distribution})") from None
    for file in files:
        if str(file).endswith(f"include/{header}"):
            folder = Path(str(file.locate()))
            for _ in Path(header).parts:
                folder = folder.parent
            return folder.resolve()
    raise NotBuilt(f"{distribution} has no {header}")


def run(program: Path, peer: PeerTree, states: PeerStates, seconds: float) -> CppResult:
    """Return inverse and forward dynamics in all states, each of two or three measurements for `seconds`.

    Raises:
        NotComparable: a machine that the program does not support.
        RuntimeError: the program failed.
    """
    found, a = _ran(program, "dynamics", peer, states, seconds)
    error = None
    if "accelerations" in found:
        accelerations = np.array(found["accelerations"], dtype=float)
        error = float(np.max(np.abs(accelerations - a)) / np.max(np.abs(a)))
    return CppResult(
        version=found["version"],
        eigen=found["eigen"],
        rnea=found["rnea_ns"] * 1e-9,
        inverse=found["inverse_ns"] * 1e-9,
        forces=np.array(found["forces"], dtype=float),
        forward=found["forward_ns"] * 1e-9 if "forward_ns" in found else None,
        forward_error=error,
    )


def regressor(program: Path, peer: PeerTree, states: PeerStates, seconds: float) -> PinRegressor:
    """Measure the regressor for `seconds`.

    Raises:
        NotComparable: a machine that the program does not support.
        RuntimeError: the program failed.
    """
    found, _ = _ran(program, "regressor", peer, states, seconds)
    return PinRegressor(
        version=found["version"],
        seconds=found["regressor_ns"] * 1e-9,
        columns=found["columns"],
        forces=np.array(found["forces"], dtype=float),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CppDerivatives:
    """Functions alone, and with their derivatives by configuration, velocity and acceleration or torque.

    Attributes:
        version: of Pinocchio.
        inverse: seconds for a state of a tree's `rnea`, and of `computeRNEADerivatives`; None with
            loops.
        forward: of `aba` and `computeABADerivatives`, with loops of `constraintDynamics` and
            `computeConstraintDynamicsDerivatives` after it.
        difference: of derivatives by configuration from differences, as a share of the largest.
    """

    version: str
    inverse: tuple[float, float] | None
    forward: tuple[float, float]
    difference: float


def derivatives(
    program: Path, peer: PeerTree, states: PeerStates, seconds: float
) -> CppDerivatives:
    """Measure derivatives, each of two or four measurements for `seconds`.

    Raises:
        NotComparable: a machine that the program does not support.
        RuntimeError: the program failed, or it has more than point constraints.
    """
    # with universal joints, whose axes move, its derivatives are wrong by up to a fifth
    # (Pinocchio 4.1.0)
    found, _ = _ran(program, "derivatives", peer, states, seconds, universal=False)
    value, both = (1e-9 * time for time in found["forward"])
    inverse = tuple(1e-9 * time for time in found["inverse"]) if "inverse" in found else None
    return CppDerivatives(
        version=found["version"], inverse=inverse, forward=(value, both), difference=found["worst"]
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CppRollout:
    """Forward dynamics integrated by Runge-Kutta 4 with one step for each held force.

    Attributes:
        version: of Pinocchio.
        seconds: for the whole motion.
        driven: driven coordinates (N, n_u) at the ends of the periods, as the tree has them.
    """

    version: str
    seconds: float
    driven: Array


def rollout(
    program: Path, peer: PeerTree, states: PeerStates, held: Array, period: float, seconds: float
) -> CppRollout:
    """Integrate from the first state, at rest or not, under forces (N, n_u) that are held over periods.

    Raises:
        NotComparable: a machine whose loops Pinocchio's own constraints do not close, or that has
            massless links.
        RuntimeError: the program failed.
    """
    if states.forward_mu is None or not states.is_regular:
        raise NotComparable(
            "Pinocchio's own constraints do not close the loops, or links are massless"
        )
    found, _ = _ran(program, "rollout", peer, states, seconds, held, period)
    q = np.array(found["coordinates"], dtype=float)
    columns = []
    for place in states.driven:
        before = 0
        for joint in pin_joints(peer).joints:
            if joint.v == place:
                columns.append(joint.sign * q[:, before])
            before += COORDINATES[joint.kind]
    if len(columns) < len(states.driven):
        raise NotComparable("a driven coordinate is one of several of a joint")
    return CppRollout(
        version=found["version"],
        seconds=found["rollout_ns"] * 1e-9,
        driven=np.stack(columns, axis=1),
    )


def _ran(
    program: Path,
    work: str,
    peer: PeerTree,
    states: PeerStates,
    seconds: float,
    held: Array | None = None,
    period: float = 0.0,
    *,
    universal: bool = True,
) -> tuple[dict[str, Any], Array]:
    """Return what the program printed, and the accelerations that it was given."""
    joints = pin_joints(peer, universal=universal)
    motion = pin_states(joints, states)
    if held is None:
        held = np.empty((0, len(states.driven)))
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.txt"
        problem.write_text(
            problem_text(peer, joints, states, motion, held, period), encoding="ascii"
        )
        command = [str(program), str(problem), str(seconds), work]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{program.name} ended with {done.returncode}: {done.stderr.strip()[:200]}"
        )
    return json.loads(done.stdout), motion[2]


def problem_text(
    peer: PeerTree,
    joints: PinJoints,
    states: PeerStates,
    motion: tuple[Array, Array, Array],
    held: Array,
    period: float,
) -> str:
    """Return all numbers that the program reads, in its order, with 17 digits, which restore a double exactly."""
    lines = [
        *_lines(peer, joints, states, motion),
        f"{period:.17g} {len(held)}",
        *map(_numbers, held),
    ]
    return "\n".join(lines) + "\n"


def _lines(
    peer: PeerTree, joints: PinJoints, states: PeerStates, motion: tuple[Array, Array, Array]
) -> Iterator[str]:
    tree, loads = peer.tree, pin_loads(joints, peer.tree, states.driven)
    yield _numbers(tree.gravity)
    yield str(len(joints.joints))
    for joint in joints.joints:
        yield f"{joint.parent} {joint.kind}"
        yield f"{_numbers(joint.axes)} {_pose(joint.at)}"
        if joint.inertia is None:
            yield _numbers(np.zeros(13))
        else:
            yield f"{joint.inertia.mass:.17g} {_numbers(joint.inertia.center)} {_numbers(joint.inertia.about_center)}"
    yield _numbers(loads.armature)
    yield str(len(loads.springs))
    for v, q, stiffness, preload in loads.springs:
        yield f"{v} {q} {stiffness:.17g} {preload:.17g}"
    yield str(len(peer.constraints))
    for ends, rows in zip(peer.constraints, _rows(peer, states), strict=True):
        yield f"{joints.of_body[ends.first.body]} {_pose(ends.first.at)}"
        yield f"{joints.of_body[ends.second.body]} {_pose(ends.second.at)}"
        yield str(len(rows))
        for is_point, e, f in rows:
            yield f"{int(is_point)} {_numbers(e)} {_numbers(f)}"
    yield str(len(loads.driven))
    yield " ".join(map(str, loads.driven))
    yield _numbers(loads.transmission)
    yield f"{int(states.forward_mu is not None and states.is_regular)} {states.forward_mu or 0.0:.17g}"
    yield str(len(motion[0]))
    for state in zip(*motion, strict=True):
        yield " ".join(_numbers(part) for part in state)


def _rows(peer: PeerTree, states: PeerStates) -> list[list[tuple[bool, Array, Array]]]:
    """Return the chosen rows of each constraint: points, then directions, as in our engines."""
    constraints = peer.tree.constraints
    every: list[tuple[int, tuple[bool, Array, Array]]] = []
    for k, constraint in enumerate(constraints):
        every += [(k, (True, point, np.zeros(3))) for point in constraint.position_directions]
    for k, constraint in enumerate(constraints):
        every += [(k, (False, pair[0], pair[1])) for pair in constraint.orthogonal_pairs]
    chosen: list[list[tuple[bool, Array, Array]]] = [[] for _ in constraints]
    for i in states.rows:
        k, row = every[i]
        chosen[k].append(row)
    return chosen


def _numbers(x: Iterable[float] | Array) -> str:
    return " ".join(f"{value:.17g}" for value in np.ravel(x))


def _pose(pose: FramePose) -> str:
    return f"{_numbers(pose.rotation)} {_numbers(pose.position)}"
