"""Forces of a source file that an imported machine lacks."""

from __future__ import annotations

from tauloop.common.errors import Problem
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.mechanism.model import Mechanism

#: Name of the diagnostic.
OMITTED = "forces of the source file that are left out"
_REMEDY = "remove them from the source if they are not meant, or add equivalent elements to a machine file"


def omission_diagnostics(mechanism: Mechanism) -> tuple[Diagnostic, ...]:
    """Return diagnostics of omitted forces, which make a result doubtful; empty without any."""
    if not mechanism.omitted_forces:
        return ()
    advice = f"{'; '.join(mechanism.omitted_forces)}: {_REMEDY}"
    return (diagnostic(OMITTED, len(mechanism.omitted_forces), at_most=0.0, advice=advice),)


def omission_problems(mechanism: Mechanism) -> tuple[Problem, ...]:
    """Return a problem for each omitted force and for each element of unknown effect."""
    omitted = (
        Problem(
            where="omitted_forces",
            what=f"the file states {force}, which is left out",
            remedy=_REMEDY,
        )
        for force in mechanism.omitted_forces
    )
    unknown = (
        Problem(
            where=element,
            what="is not an element that Tauloop knows: it may change the machine",
            remedy="remove it if it has no effect on the motion, or write what it does in another way",
        )
        for element in mechanism.unknown_elements
    )
    return tuple(
        Problem(where=problem.where, what=problem.what, remedy=problem.remedy, file=mechanism.file)
        for problem in (*omitted, *unknown)
    )
