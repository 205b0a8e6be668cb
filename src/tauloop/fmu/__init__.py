"""Machines behind the Functional Mock-up Interface.

Examples:
    >>> import tauloop as tl
    >>> tl.fmu.FmuOptions().version
    '3'
"""

from tauloop.fmu.coupling import FmuCoupling as FmuCoupling
from tauloop.fmu.export import (
    FmuExport as FmuExport,
    FmuOptions as FmuOptions,
    export_fmu as export_fmu,
)
from tauloop.fmu.master import co_simulate as co_simulate
from tauloop.fmu.variables import FmuVariable as FmuVariable, FmuVariables as FmuVariables
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)
