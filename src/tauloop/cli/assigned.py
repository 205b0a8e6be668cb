"""Numbers by name and quantities with their unit on the command line: those of the library."""

from tauloop.assembly.named_values import TOOL, assigned, full_name
from tauloop.mechanism.quantities import quantity

__all__ = ["TOOL", "assigned", "full_name", "quantity"]
