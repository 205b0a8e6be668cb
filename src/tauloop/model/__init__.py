"""The `Model`: every function of one assembled machine, on batches, with checked ports.

Examples:
    >>> import tauloop as tl
    >>> tl.model.Payload(mass=1.5).mass
    1.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.model.derivatives import Derivatives as Derivatives
    from tauloop.model.equation_text.operation_counts import (
        CountOptions as CountOptions,
        OperationCounts as OperationCounts,
        count_operations as count_operations,
    )
    from tauloop.model.equation_text.written_equations import (
        EquationOptions as EquationOptions,
        WrittenEquations as WrittenEquations,
        write_equations as write_equations,
    )
    from tauloop.model.forces.force_sharing import ForceSharing as ForceSharing
    from tauloop.model.forces.hybrid import (
        HybridForces as HybridForces,
        HybridFunctions as HybridFunctions,
    )
    from tauloop.model.model import Model as Model
    from tauloop.model.motion import Motion as Motion
    from tauloop.model.products import Products as Products
    from tauloop.model.ready import (
        FunctionOptions as FunctionOptions,
        load_function as load_function,
    )
    from tauloop.model.tool import Payload as Payload, ToolMotion as ToolMotion
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
