"""The machine as numbers: assembly, sorting into blocks, programs, and the `Model` bundle with checked ports."""

from tauloop.functions.assembly import Assembly, assemble
from tauloop.functions.evaluator import Compiled, Evaluator, Interpreted
from tauloop.functions.hybrid import HybridForces, HybridFunctions
from tauloop.functions.hybrid_locks import Locks, Spin, find_spins
from tauloop.functions.hybrid_sharing import ForceSharing
from tauloop.functions.loops import Loops, loops
from tauloop.functions.model import Model
from tauloop.functions.motion_functions import MotionFunctions
from tauloop.functions.ports import Port
from tauloop.functions.ready import FunctionOptions, load_function
from tauloop.functions.state import Forces, Health, State

__all__ = [
    "Assembly",
    "Compiled",
    "Evaluator",
    "ForceSharing",
    "Forces",
    "FunctionOptions",
    "Health",
    "HybridForces",
    "HybridFunctions",
    "Interpreted",
    "Locks",
    "Loops",
    "Model",
    "MotionFunctions",
    "Port",
    "Spin",
    "State",
    "assemble",
    "find_spins",
    "load_function",
    "loops",
]
