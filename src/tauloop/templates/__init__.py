"""Machine files of one's own dimensions: from a template, from another machine, or from another tool's file."""

from tauloop.lazy import public_names
from tauloop.templates.library import TEMPLATES as TEMPLATES, title as title
from tauloop.templates.text import NamedValue as NamedValue
from tauloop.templates.workflow import (
    NewMachine as NewMachine,
    NewMachineOptions as NewMachineOptions,
    dimensions as dimensions,
    new_machine as new_machine,
)

__dir__, __all__ = public_names(__name__)
