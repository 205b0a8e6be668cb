"""Design with proofs: certified boxes of poses, tolerances, and dimensional synthesis.

It uses models, their kinematics, elasticity, motions and simulations; it must not import
identification or display.

Examples:
    >>> import tauloop as tl
    >>> tl.certify("delta", ranges="x=-50:50 mm,y=-50:50 mm").verdict
    'proved'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.design.certification import (
        CertificateCheck as CertificateCheck,
        Certification as Certification,
        certify as certify,
        check_certificate as check_certificate,
    )
    from tauloop.design.certify_options import CertifyOptions as CertifyOptions
    from tauloop.design.synthesis.workflow import (
        Synthesis as Synthesis,
        SynthesisOptions as SynthesisOptions,
        synthesize as synthesize,
    )
    from tauloop.design.tolerances.allocation import (
        ToleranceAllocation as ToleranceAllocation,
        allocate_tolerances as allocate_tolerances,
    )
    from tauloop.design.tolerances.allocation_problem import (
        ToleranceAllocationOptions as ToleranceAllocationOptions,
    )
    from tauloop.design.tolerances.grades import grade_tolerance as grade_tolerance
    from tauloop.design.tolerances.tolerance_map import (
        ToleranceMap as ToleranceMap,
        ToleranceMapOptions as ToleranceMapOptions,
        tolerance_map as tolerance_map,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
