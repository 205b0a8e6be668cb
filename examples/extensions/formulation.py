"""A formulation of one's own: the forces as the sum of what each parameter contributes."""

import casadi as ca

from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.values import Entries
from tauloop.testing import check_formulation


def forces_by_columns(mechanism, motion, entries) -> ca.SX:
    """Newton and Euler's forces, made linear in pi by differentiation: tau = (d tau / d pi) pi."""
    symbol = ca.SX.sym("pi", entries.pi.numel())
    forces = NEWTON_EULER.forces(mechanism, motion, Entries(entries.parameters, symbol))
    return ca.jacobian(forces, symbol) @ entries.pi


BY_COLUMNS = Formulation(
    name="by-columns",
    forces=forces_by_columns,
    idea="one column of forces for each parameter, added up",
    valid="every mechanism",
    choose="to see what each parameter contributes",
    source="Gautier and Khalil 1990: the inverse dynamics is linear in the inertial parameters",
)

if __name__ == "__main__":
    check_formulation(BY_COLUMNS)
    print("a formulation by columns: Model(mechanism, formulation=BY_COLUMNS)")
