"""Random machines and damaged machine files, built and evaluated.

None ends in a traceback; what is evaluated closes its loops, and its forward dynamics undo its
inverse dynamics.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

import numpy as np

from fuzz.mutation import mutated
from fuzz.targets import TARGETS
from tauloop.common.errors import TauloopError
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.formats import loads
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.testing.machines import planar_loop, serial_chain, six_legs


def damaged_file(rng: np.random.Generator) -> Mechanism:
    """A shipped machine or a case of the tests with one change in its text, where that still reads."""
    corpus = TARGETS["machine"].corpus()
    text = mutated(
        lambda n: int(rng.integers(n)), corpus[rng.integers(len(corpus))], corpus, most=1
    )
    return loads(text.decode("utf-8", "replace"))


KINDS = (serial_chain, six_legs, planar_loop, damaged_file)
#: Largest loop residual of an evaluated state, m: far below a micrometre, far above rounding.
CLOSED = 1e-9
#: forward(inverse(a)) against a, relative to the largest, times the state's condition: rounding of
#: both.
BACK = 1e-9
#: Processor time that a machine may take, s (issue 13).
SLOWEST = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one random machine."""

    outcome: str
    seconds: float


def tried(seed: int, states: int = 4) -> Trial:
    """Build the machine of a seed and evaluate it at random states.

    Raises:
        AssertionError: a loop is open, forward dynamics do not undo inverse dynamics, or it took
            too long.
    """
    started = _processor_time()
    try:
        outcome = _evaluated(seed, states)
    except TauloopError as refusal:
        outcome = f"refused: {type(refusal).__name__}"
        if not refusal.problems:
            raise AssertionError(f"seed {seed}: a refusal that says nothing") from refusal
    seconds = _processor_time() - started
    assert seconds < SLOWEST, f"seed {seed}: {seconds:.1f} s of processor time"
    return Trial(outcome=outcome, seconds=seconds)


def _evaluated(seed: int, states: int) -> str:
    rng = np.random.default_rng(seed)
    model = Model(KINDS[seed % len(KINDS)](rng), evaluator=Interpreted())
    if model.assembly.findings:
        return "finding: " + model.assembly.findings[0].where
    if model.assembly.passive or model.assembly.is_redundant:
        return "built: passive or redundant"
    functions, q = model.platform, random_states(model, states, rng).q
    position = functions.ports.at(q)
    v, a = rng.normal(size=(2, len(q), functions.ports.velocity.size))
    forces = functions.inverse_dynamics(position, v, a, start=q)
    residual = np.abs(model.assembly.loops.residuals(forces.state.q)[0]).max(initial=0.0)
    assert residual < CLOSED, f"seed {seed}: loops open by {residual:.1e} m"
    back = functions.forward_dynamics(position, v, forces.force, start=q)
    error = np.abs(functions.ports.rates(np.asarray(back.a)) - a).max() / max(
        1.0, np.abs(np.asarray(forces.state.a)).max()
    )
    worst = float(functions.condition(q).max())
    assert error < BACK * worst, (
        f"seed {seed}: forward(inverse) differs by {error:.1e} at condition {worst:.1e}"
    )
    return "evaluated"


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(item.ru_utime + item.ru_stime for item in used)
