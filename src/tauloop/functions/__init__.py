"""The machine as numbers: assembly, sorting into blocks, programs, and the `Model` bundle with checked ports."""

from tauloop.functions.assembly import Assembly, assemble
from tauloop.functions.evaluator import Compiled, Evaluator, Interpreted
from tauloop.functions.loops import Loops, loops
from tauloop.functions.model import Model
from tauloop.functions.motion_functions import MotionFunctions
from tauloop.functions.ports import Port
from tauloop.functions.state import Forces, Health, State

__all__ = [
    "Assembly",
    "Compiled",
    "Evaluator",
    "Forces",
    "Health",
    "Interpreted",
    "Loops",
    "Model",
    "MotionFunctions",
    "Port",
    "State",
    "assemble",
    "loops",
]
