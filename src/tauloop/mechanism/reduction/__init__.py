"""Reduced models: smaller mechanisms with lumped masses and merged bodies of equal rotation.

Every step is a function of a mechanism and of the known motion of its bodies. It reports which
quantities are preserved exactly and which are approximated. `tauloop.kinematics.reduction`
determines the motion, runs the steps and measures the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.mechanism.reduction.couplings import (
        gather_joints as gather_joints,
        lump_translating_body as lump_translating_body,
        point_masses as point_masses,
    )
    from tauloop.mechanism.reduction.graph import (
        displaced as displaced,
        numbers as numbers,
        without_unused_parameters as without_unused_parameters,
    )
    from tauloop.mechanism.reduction.links import (
        group_parallel_links as group_parallel_links,
        is_behind as is_behind,
        merge_rods as merge_rods,
        parallel_joints as parallel_joints,
    )
    from tauloop.mechanism.reduction.lumping import (
        Equivalence as Equivalence,
        drop_rod_inertia as drop_rod_inertia,
        equivalence as equivalence,
        lump_rods as lump_rods,
        total_mass as total_mass,
    )
    from tauloop.mechanism.reduction.parallel import (
        carriers as carriers,
        concentrate_mass as concentrate_mass,
        distribute_bar as distribute_bar,
        distribute_rod as distribute_rod,
        lump_pinned_body as lump_pinned_body,
        parallel_couplings as parallel_couplings,
    )
    from tauloop.mechanism.reduction.planar import (
        as_laminas as as_laminas,
        is_planar as is_planar,
        links_as_rods as links_as_rods,
        planar_inertia as planar_inertia,
    )
    from tauloop.mechanism.reduction.platform import hold_platform as hold_platform
    from tauloop.mechanism.reduction.steps import BodyMotions as BodyMotions, Step as Step
    from tauloop.mechanism.reduction.symmetry import share_parameters as share_parameters
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
