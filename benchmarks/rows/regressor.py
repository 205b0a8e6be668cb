"""The regressor of actuator forces in batch, and Pinocchio's joint-torque regressor with the projection it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from peers import pinocchio_cpp, pinocchio_python
from peers.bodies import peer_tree
from peers.comparison import TOLERANCE, Disagreement, Settings, consistent, difference
from peers.states import tree_states
from peers.timing import seconds_per_call

from rows.limits import limits
from rows.machines import machine
from rows.row import Row
from tauloop import Model
from tauloop.verification.engines import frictionless

REGRESSOR_MACHINE = "gantry_tau_5dof"
TARGET = "20×"
#: Samples of a batch: a regressor has hundreds of numbers for each, and they should stay in the
#: core's own cache.
REGRESSOR_BATCH = 128


def rows(
    settings: Settings, say: Callable[[str], None], name: str = REGRESSOR_MACHINE
) -> Iterator[Row]:
    """Yield the row of one machine.

    Raises:
        Disagreement: a regressor times its parameters is not the reference's force.
    """
    say(f"{name}: states")
    mechanism = frictionless(machine(name))
    engine, motion, chosen = consistent(
        mechanism, settings.states, np.random.default_rng(settings.seed)
    )
    reference = engine.inverse_dynamics(motion).forces
    states, peer = tree_states(engine, motion), peer_tree(engine.tree)
    say(f"{name}: Pinocchio's regressor")
    if isinstance(settings.cpp, str):
        found, by = (
            pinocchio_python.regressor(peer, states, settings.seconds),
            "Pinocchio in Python",
        )
    else:
        found, by = (
            pinocchio_cpp.regressor(settings.cpp, peer, states, settings.seconds),
            "Pinocchio C++",
        )
    _require(by, found.forces, reference)

    say(f"{name}: Tauloop's regressor (large programs take the compiler tens of seconds, once)")
    model = Model(mechanism)
    kernel = model.platform.compiled("regressor_actuators", ("regressor",))
    given = {
        "position": chosen.position,
        "velocity": chosen.velocity,
        "acceleration": chosen.acceleration,
    }
    given["start"] = np.broadcast_to(model.assembly.q, chosen.q.shape)
    Y = kernel.batch(given, len(reference))["regressor"].reshape(len(reference), -1, len(model.pi))
    _require("Tauloop", Y @ model.pi, reference)
    batch = {
        key: np.resize(array, (REGRESSOR_BATCH, array.shape[1])) for key, array in given.items()
    }
    time = seconds_per_call(
        lambda: kernel.batch(batch, REGRESSOR_BATCH), settings.seconds, REGRESSOR_BATCH
    )
    iterations = float(kernel.batch(batch, REGRESSOR_BATCH)["health"][:, 3].mean())
    limit, divider = limits(kernel.function, iterations, in_lanes=True)
    yield Row(
        work=f"{name}, regressor ({Y.shape[1]} × {Y.shape[2]}), batch",
        tauloop=time,
        peer=by,
        version=found.version,
        peer_time=found.seconds,
        target=TARGET,
        limit=limit,
        divider=divider,
        note=f"the peer computes {found.columns} columns",
    )


def _require(who: str, forces: np.ndarray, reference: np.ndarray) -> None:
    worst = difference(forces, reference)
    if not worst <= TOLERANCE:
        raise Disagreement(
            f"the regressor by {who} differs from the reference by {worst:.1e} (limit {TOLERANCE:.0e})"
        )
