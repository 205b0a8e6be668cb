"""Tables of link parameters: values and intervals, and families of dependent parameters.

The parameters of a family are not determined, but become so if some of them are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification import LinkFamily, LinkParameters
from tauloop.identification.links.link_parameters import LinkParameter


def link_tables(links: LinkParameters) -> Iterator[Printed]:
    """Yield known values, parameters, families, and the names of unidentifiable parameters."""
    known = ", ".join(
        f"{name} {value:.6g}" + (f" ± {deviation:.2g}" if deviation else "")
        for name, (value, deviation) in links.known.items()
    )
    yield f"known (SI): {known}" if known else "known: none"
    rows = (
        (
            parameter.name,
            parameter.unit,
            parameter.value,
            parameter.deviation,
            _interval(parameter),
            parameter.file,
            "" if parameter.family is None else str(parameter.family + 1),
            ", ".join(parameter.links),
        )
        for parameter in links.parameters
    )
    confidence = links.provenance.options["confidence"]
    yield table(
        f"Parameters of the links; intervals at {confidence:.0%} confidence, over all physically "
        "consistent parameters",
        "parameter",
        "unit",
        ("value", ".6g"),
        ("deviation", ".2g"),
        "interval",
        ("in the file", ".6g"),
        "family",
        "links",
        rows=rows,
    )
    for number, family in enumerate(links.families, 1):
        yield f"family {number}: {_family(family)}"
    if links.unidentifiable:
        yield f"unidentifiable: {', '.join(links.unidentifiable)}"
    yield from doubts(links)


def _interval(parameter: LinkParameter) -> str:
    """Return the interval of a parameter as text; empty if the parameter has a value."""
    if parameter.value is not None:
        return ""
    has_interval = bool(parameter.kind)
    if not has_interval:
        return "no interval"
    return f"{_limit_text(parameter.lower)} to {_limit_text(parameter.upper)}"


def _limit_text(limit: float | None) -> str:
    """Return an end of an interval as text."""
    return "unbounded" if limit is None else f"{limit:.5g}"


def _family(family: LinkFamily) -> str:
    """Return which parameters of a family follow from the others, and by how much, as text."""
    verb = "is" if len(family.stated) == 1 else "are"
    stated_names = ", ".join(family.stated)
    text = f"{', '.join(family.members)}: if {stated_names} {verb} known, the others follow"
    if family.changes is None:
        return text
    (stated,) = family.stated
    changes = ", ".join(
        f"{name} by {change:.4g}"
        for name, change in family.changes.items()
        if name != stated and change
    )
    return f"{text} (near the file's values, increasing {stated} by 1 changes {changes})"
