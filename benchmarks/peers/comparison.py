"""All contenders on one machine: first agreement, then times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from peers import casadi_peer, drake_peer, mujoco_peer, pinocchio_cpp, pinocchio_python
from peers.bodies import peer_tree
from peers.own import FORWARD, INVERSE, Contender, Ready
from peers.states import NotComparable, PeerStates, shared_out, tree_states
from peers.timing import LOOP, seconds_per_call
from tauloop.common.errors import EngineError
from tauloop.kinematics import RandomStates, random_states
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array
from tauloop.model import Model
from tauloop.verification.engines import (
    Engine,
    NamedMotion,
    frictionless,
    mujoco_engine,
    pinocchio_engine,
)

#: Largest difference, as a share of the largest number of a sample: rounding errors amplified by
#: the conditioning of the loops.
TOLERANCE = 1e-9
#: Samples of a batch for machine code, and for CasADi's virtual machine.
BATCH, SMALL_BATCH = 4096, 512


class Disagreement(Exception):
    """Contenders disagree, so that there is nothing to time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the measurement.

    Attributes:
        states: how many random states.
        seconds: for each measurement.
        seed: of the random states.
        cpp: the built C++ program of the Pinocchio peer, or why there is none.
        contenders: which of Tauloop's ways of running are measured, by name; all without it.
        forward: whether Tauloop's forward dynamics is measured.
    """

    states: int = 256
    seconds: float = 0.2
    seed: int = 0
    cpp: Path | str = "not asked for"
    contenders: tuple[str, ...] = ()
    forward: bool = True

    def wants(self, contender: Contender) -> bool:
        """Return whether a way of running is measured."""
        return not self.contenders or contender.name in self.contenders


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of one contender for one work, s for a state; None where there is no such thing.

    Attributes:
        name, version: who.
        call: one call in machine code.
        batch: a sample of a batch.
        python: one call from Python: set a state, call, take the result.
        part: of `call`, the tree's forces alone (Pinocchio's `rnea`).
        overhead: of calling from Python, left out of `call`.
        difference: largest difference from the reference.
        note: what the reader should know.
    """

    name: str
    version: str = ""
    call: float | None = None
    batch: float | None = None
    python: float | None = None
    part: float | None = None
    overhead: float | None = None
    difference: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One row of the comparison: what is computed, Tauloop's ways of doing it, and the peers'."""

    name: str
    tauloop: tuple[Times, ...]
    peers: tuple[Times, ...]

    @property
    def fastest_call(self) -> float | None:
        """Return the least time of the peers' calls in machine code."""
        return min((peer.call for peer in self.peers if peer.call is not None), default=None)

    @property
    def fastest_python(self) -> float | None:
        """Return the least time of the peers' Python loops."""
        return min((peer.python for peer in self.peers if peer.python is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All results of one machine."""

    machine: str
    inverse: Work
    forward: Work


def compared(
    mechanism: Mechanism, settings: Settings, say: Callable[[str], None] = lambda text: None
) -> Comparison:
    """Check and time all contenders on one machine, without friction.

    The peers are given all coordinates of their trees; Tauloop starts from the platform's motion
    and computes the kinematics as well.

    Args:
        mechanism: the machine.
        settings: how it is measured.
        say: called with a text on each step.

    Raises:
        EngineError: neither engine is installed.
        Disagreement: a contender's forces or accelerations differ from the reference by more than
            `TOLERANCE`.
    """
    say("states")
    mechanism = frictionless(mechanism)
    engine, motion, chosen = consistent(
        mechanism, settings.states, np.random.default_rng(settings.seed)
    )
    reference = engine.inverse_dynamics(motion).forces
    peers_of = _Peers(
        mechanism=mechanism,
        engine=engine,
        motion=motion,
        chosen=chosen,
        forces=reference,
        settings=settings,
        say=say,
    )
    before = peers_of.times()

    arrays = (chosen.position, chosen.velocity, chosen.acceleration)
    inverse = [
        _own(c, mechanism, arrays, reference, settings, say, "inverse")
        for c in INVERSE
        if settings.wants(c)
    ]
    arrays = (chosen.position, chosen.velocity, reference)
    wanted = [c for c in FORWARD if settings.forward and settings.wants(c)]
    forward = [
        _own(c, mechanism, arrays, chosen.acceleration, settings, say, "forward") for c in wanted
    ]
    # The peers run before and after Tauloop, so that a busy minute does not count against them.
    after = peers_of.times()
    peers = [tuple(map(_faster, one, other)) for one, other in zip(before, after, strict=True)]
    return Comparison(
        machine=mechanism.name,
        inverse=Work(name="inverse dynamics", tauloop=tuple(inverse), peers=peers[0]),
        forward=Work(name="forward dynamics", tauloop=tuple(forward), peers=peers[1]),
    )


def _faster(one: Times, other: Times) -> Times:
    """Return the lesser of each time of one contender."""
    fields = ("call", "batch", "python", "part", "overhead")
    both = {name: (getattr(one, name), getattr(other, name)) for name in fields}
    return replace(one, **{name: min(pair) for name, pair in both.items() if None not in pair})


def consistent(
    mechanism: Mechanism, n: int, rng: np.random.Generator
) -> tuple[Engine, NamedMotion, RandomStates]:
    """Return an engine for the machine, and the same n random states in the forms of engines and of Tauloop."""
    model = Model(mechanism)
    chosen = random_states(model, n, rng)
    shape = model.topology
    motion = NamedMotion(
        q={name: chosen.q[:, i] for i, name in enumerate(shape.coordinate_names)},
        v={name: chosen.v[:, i] for i, name in enumerate(shape.velocity_names)},
        a={name: chosen.a[:, i] for i, name in enumerate(shape.velocity_names)},
    )
    return closing_engine(mechanism), motion, chosen


def difference(found: Array, wanted: Array) -> float:
    """Return the largest difference (N, n) as a share of its sample's largest number; infinite if not finite."""
    scale = np.maximum(np.max(np.abs(wanted), axis=1), 1e-3 * np.max(np.abs(wanted)))
    worst = float(np.max(np.abs(found - wanted) / scale[:, None]))
    return worst if np.isfinite(worst) else np.inf


def _agreeing(name: str, worst: float) -> float:
    if not worst <= TOLERANCE:
        raise Disagreement(
            f"{name} differs from the reference by {worst:.1e} (limit {TOLERANCE:.0e})"
        )
    return worst


def closing_engine(mechanism: Mechanism) -> Engine:
    """Return the engine that closes the loops: the one that is installed."""
    try:
        return pinocchio_engine(mechanism)
    except EngineError:
        return mujoco_engine(mechanism)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Peers:
    """The peers' side of the comparison of one machine.

    Attributes:
        mechanism: the machine.
        engine: the machine in the engine that closes its loops.
        motion, chosen: the states in the forms of engines and of Tauloop.
        forces: reference of the actuator forces (N, n_u).
        settings: how it is measured.
        say: called with a text on each step.
    """

    mechanism: Mechanism
    engine: Engine
    motion: NamedMotion
    chosen: RandomStates
    forces: Array
    settings: Settings
    say: Callable[[str], None]

    def times(self) -> tuple[tuple[Times, ...], tuple[Times, ...]]:
        """Return the times of inverse and forward dynamics, in the same order of peers."""
        try:
            states: PeerStates | NotComparable = tree_states(self.engine, self.motion)
        except NotComparable as error:
            states = error
        parts = []
        for name, measure in (("Pinocchio", _pinocchio), ("MuJoCo", _mujoco), ("Drake", _drake)):
            self.say(name)
            try:
                if isinstance(states, NotComparable):
                    raise states
                parts.append(measure(self.engine, states, self.forces, self.settings))
            except (EngineError, NotComparable) as error:
                parts.append((Times(name=name, note=str(error)), Times(name=name, note=str(error))))
        self.say("CasADi")
        p, v, a = self.chosen.position, self.chosen.velocity, self.chosen.acceleration
        inverse = self._casadi("inverse_dynamics", (p, v, a), self.forces)
        forward = self._casadi("forward_dynamics", (p, v, self.forces), a)
        parts.append((inverse, forward))
        return tuple(part[0] for part in parts), tuple(part[1] for part in parts)

    def _casadi(self, function: str, arrays: tuple[Array, Array, Array], wanted: Array) -> Times:
        try:
            found = casadi_peer.run(self.mechanism, function, arrays, self.settings.seconds)
        except NotComparable as error:
            return Times(name="CasADi's C", note=str(error))
        return Times(
            name="CasADi's C",
            version=found.version,
            call=found.call,
            difference=_agreeing("CasADi's C", difference(found.values, wanted)),
            note="the same expressions, printed by CasADi and built with the same flags",
        )


def _pinocchio(
    engine: Engine, states: PeerStates, reference: Array, settings: Settings
) -> tuple[Times, Times]:
    peer = peer_tree(engine.tree)
    loop = pinocchio_python.run(peer, states, settings.seconds)
    worst = _agreeing("Pinocchio in Python", difference(loop.forces, reference))
    if isinstance(settings.cpp, str):
        note = f"Python loop only: no C++ program ({settings.cpp})"
        return (
            Times(
                name="Pinocchio",
                version=loop.version,
                python=loop.inverse,
                difference=worst,
                note=note,
            ),
            Times(name="Pinocchio", version=loop.version, note=note),
        )
    native = pinocchio_cpp.run(settings.cpp, peer, states, settings.seconds)
    worst = max(worst, _agreeing("Pinocchio in C++", difference(native.forces, reference)))
    inverse = Times(
        name="Pinocchio",
        version=native.version,
        call=native.inverse,
        python=loop.inverse,
        part=native.rnea,
        difference=worst,
        note=f"headers of the wheel with Eigen {native.eigen}",
    )
    if native.forward is None:
        note = "the tree's mass matrix cannot be inverted (massless links), which its forward dynamics needs"
        return inverse, Times(name="Pinocchio", version=native.version, note=note)
    error = _agreeing("Pinocchio's forward dynamics", native.forward_error or 0.0)
    return inverse, Times(
        name="Pinocchio", version=native.version, call=native.forward, difference=error
    )


def _mujoco(
    engine: Engine, states: PeerStates, reference: Array, settings: Settings
) -> tuple[Times, Times]:
    found = mujoco_peer.run(peer_tree(engine.tree), states, settings.seconds)
    forces = shared_out(states, engine, mujoco_peer.file_forces(engine, states, found.tree_forces))
    inverse = Times(
        name="MuJoCo",
        version=found.version,
        call=found.inverse,
        python=found.loop,
        difference=_agreeing("MuJoCo", difference(forces, reference)),
        overhead=found.overhead,
        note="forces of the tree with soft constraints; distributing them among the actuators is not timed",
    )
    note = "soft constraints: accelerations are no reference"
    if found.forward is None:
        note = "the tree's mass matrix cannot be inverted (massless links)"
    overhead = None if found.forward is None else found.overhead
    return inverse, Times(
        name="MuJoCo", version=found.version, call=found.forward, overhead=overhead, note=note
    )


def _drake(
    engine: Engine, states: PeerStates, reference: Array, settings: Settings
) -> tuple[Times, Times]:
    found = drake_peer.run(peer_tree(engine.tree), states, settings.seconds)
    inverse = Times(
        name="Drake",
        version=found.version,
        call=found.tree,
        python=found.loop,
        difference=_agreeing("Drake", difference(found.forces, reference)),
        overhead=found.overhead,
        note="forces of the tree; distributing them among the actuators is not timed",
    )
    note = "its continuous plants have no loop constraints"
    return inverse, Times(name="Drake", version=found.version, note=note)


def _own(
    contender: Contender,
    mechanism: Mechanism,
    arrays: tuple[Array, Array, Array],
    wanted: Array,
    settings: Settings,
    say: Callable[[str], None],
    what: str,
) -> Times:
    say(f"Tauloop {contender.name}, {what}")
    try:
        ready = contender.make(mechanism)
        calls = None if ready.calls is None else ready.calls(*arrays)
    except NotComparable as error:
        return Times(name=contender.name, note=str(error))
    worst = _agreeing(
        f"Tauloop {contender.name}, {what} dynamics", difference(ready.work(*arrays), wanted)
    )
    call = None
    if calls is not None:
        loops, found = calls
        worst = max(
            worst, _agreeing(f"Tauloop {contender.name}, calls in C", difference(found, wanted))
        )
        call = min(seconds_per_call(loop, settings.seconds, len(wanted)) for loop in loops)
    return Times(
        name=contender.name,
        call=call,
        batch=_batch(ready, arrays, settings),
        python=_loop(ready, arrays, settings),
        difference=worst,
    )


def _batch(ready: Ready, arrays: tuple[Array, Array, Array], settings: Settings) -> float:
    n = SMALL_BATCH if ready.calls is None else BATCH
    large = [np.resize(array, (n, array.shape[1])) for array in arrays]
    return seconds_per_call(lambda: ready.work(*large), settings.seconds, n)


def _loop(ready: Ready, arrays: tuple[Array, Array, Array], settings: Settings) -> float:
    """Return the time of a Python loop over states; where there is no faster way, with arrays of one sample."""
    work: Callable[..., Array]
    if ready.single is not None:
        rows = np.hstack([array[:LOOP] for array in arrays])
        work, samples = ready.single, [(sample,) for sample in rows]
    else:
        work = ready.work
        position, velocity, other = (array[:8, None] for array in arrays)
        samples = list(zip(position, velocity, other, strict=True))

    def loop() -> None:
        for sample in samples:
            work(*sample)

    return seconds_per_call(loop, settings.seconds, len(samples))
