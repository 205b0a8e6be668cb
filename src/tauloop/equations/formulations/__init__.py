"""Formulations of dynamics: all compute the same tree forces M a + h of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca

from tauloop.common.extensions import Registry
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.records import dataclass
from tauloop.equations.newton_euler import tree_forces
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries
from tauloop.mechanism.model import Mechanism

if TYPE_CHECKING:
    from tauloop.equations.formulations.generalized_momentum import generalized_momentum_forces
    from tauloop.equations.formulations.hamilton import hamilton_forces
    from tauloop.equations.formulations.lagrange import lagrange_forces
else:
    (generalized_momentum_forces,) = lazy_functions(
        "tauloop.equations.formulations.generalized_momentum", "generalized_momentum_forces"
    )
    (hamilton_forces,) = lazy_functions(
        "tauloop.equations.formulations.hamilton", "hamilton_forces"
    )
    (lagrange_forces,) = lazy_functions(
        "tauloop.equations.formulations.lagrange", "lagrange_forces"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Formulation:
    """A method of computing the tree forces.

    Attributes:
        name: name in commands and functions.
        forces: function (mechanism, motion, entries) -> M a + h (n_v,). The `TreeMotion` contains
            topology and parameter values; `Entries` contains the dynamic parameters, `parameters`
            and `pi`.
        idea: principle, in one sentence.
        valid: machines and motions for which the formulation is valid.
        choose: purpose for which to choose the formulation.
        source: literature.
    """

    name: str
    forces: Callable[[Mechanism, TreeMotion, Entries], ca.SX]
    idea: str
    valid: str
    choose: str
    source: str


NEWTON_EULER = Formulation(
    name="newton-euler",
    forces=tree_forces,
    idea="Newton-Euler equations of every body, projected onto the coordinates by virtual work",
    valid="every mechanism",
    choose="the default: fewest operations, linear in π without differentiation",
    source="Khalil and Ibrahim 2007; Gantry-Tau paper, eq. 1",
)

#: All formulations, the default first. Tests, the table in the documentation and the choices of
#: commands use this list.
FORMULATIONS: tuple[Formulation, ...] = (
    NEWTON_EULER,
    Formulation(
        name="generalized-momentum",
        forces=generalized_momentum_forces,
        idea="the force on every body is the rate of its momentum in the base frame, projected by "
        "its velocity Jacobian",
        valid="every mechanism; for rods without spin and with unequal transverse inertias it uses "
        "the link frame, as in the RCID paper, and differs from Newton-Euler",
        choose="to describe each body as an equivalent virtual platform with matrices I, V and G",
        source="Lopes and Almeida 2008 (RCID paper), eqs. 12 to 73",
    ),
    Formulation(
        name="lagrange",
        forces=lagrange_forces,
        idea="derivatives of the kinetic and potential energy, velocity terms in Koditschek's form",
        valid="mechanisms whose kinetic energy is a function of q and v: no rods without spin that "
        "have unequal transverse inertias",
        choose="for proofs and passivity-based control: M' - 2 V is skew",
        source="Koditschek 1984; Poincaré 1901 for angular velocities",
    ),
    Formulation(
        name="hamilton",
        forces=hamilton_forces,
        idea="rates of the momenta p = ∂T/∂v of all coordinates; the rows of the platform "
        "determine the multipliers",
        valid="mechanisms whose kinetic energy is a function of q and v; also samples without "
        "accelerations, with a second-order error in the step",
        choose="for measured or sampled motion whose accelerations are unknown or noisy",
        source="Miller (NUWAR paper), eqs. 1 to 8",
    ),
)

#: Formulations by name, including those of installed packages.
NAMED_FORMULATIONS: Registry[Formulation] = Registry(
    "tauloop.formulations", Formulation, {item.name: item for item in FORMULATIONS}
)


def formulation_table() -> str:
    """Return the table of formulations in Markdown, for the documentation."""
    rows = [("formulation", "idea", "valid for", "use it", "source"), ("---",) * 5]
    rows += [(f"`{f.name}`", f.idea, f.valid, f.choose, f.source) for f in FORMULATIONS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
