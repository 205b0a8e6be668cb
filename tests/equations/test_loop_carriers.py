"""Loops are closed in the frame of the outermost body that carries both of their ends."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import tauloop as tl
from tauloop.equations.assembly.loops import closure, nominal
from tauloop.equations.topology import topology, with_ends
from tauloop.equations.tree import symbolic_motion

#: Shipped machines with loops on moving bodies, and such a loop.
CARRIED = [
    ("excavator", "bucket_cylinder", "arm_body"),
    ("palletiser", "upper_level_bar", "upper_arm"),
    ("par4", "back_right", "front"),
    ("scissor_lift", "middle_2", "rising_1"),
]


@pytest.mark.parametrize(("machine", "loop", "carrier"), CARRIED)
def test_equations_contain_only_the_coordinates_of_their_loop(
    machine: str, loop: str, carrier: str
) -> None:
    mechanism = with_ends(tl.load(machine))
    shape = topology(mechanism)
    motion = symbolic_motion(shape, nominal(mechanism))
    ends = {rod.name: (rod.start.body, rod.end.body) for rod in mechanism.rods}
    ends |= {cut.name: (cut.parent.body, cut.child.body) for cut in shape.cuts}
    actual, branches = shape.loop(*ends[loop])
    assert actual == carrier
    allowed = {i for edge in branches for i in edge.q}
    allowed |= {iq for rod, iq, _ in shape.telescopes if rod.name == loop}
    rows = [row for row in closure(mechanism, motion) if row.element == loop]
    used = {i for row in rows for i in range(shape.n_q) if ca.depends_on(row.residual, motion.q[i])}
    assert used
    assert used <= allowed


@pytest.mark.parametrize(("machine", "loop", "carrier"), CARRIED)
def test_residuals_have_the_size_of_the_gap_in_space(machine: str, loop: str, carrier: str) -> None:
    """Open loops by plain kinematics in base coordinates: the same distances, in any frame."""
    mechanism = with_ends(tl.load(machine))
    shape = topology(mechanism)
    motion = symbolic_motion(shape, nominal(mechanism))
    rows = [row for row in closure(mechanism, motion) if row.element == loop]
    rod = next((rod for rod in mechanism.rods if rod.name == loop), None)
    if rod is not None:
        first, last = rod.start, rod.end
    else:
        cut = next(cut for cut in shape.cuts if cut.name == loop)
        first, last = cut.parent, cut.child
    gap = motion.point(last).p - motion.point(first).p
    lengths = [row.psi for row in rows if row.is_length]
    if rod is not None:
        (row,) = rows
        measured, expected = row.psi, (ca.sumsqr(gap) - row.scale**2) / 2
    elif len(lengths) == 3:
        measured, expected = ca.sumsqr(ca.vertcat(*lengths)), ca.sumsqr(gap)
    else:
        pytest.skip("this joint leaves some directions free")
    both = ca.Function("both", [motion.q], [measured, expected])
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = np.array(shape.reference) + 0.1 * rng.normal(size=shape.n_q)
        for start, _ in shape.quaternions:
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        got, wanted = map(float, both(q))
        assert got == pytest.approx(wanted, rel=1e-9)
