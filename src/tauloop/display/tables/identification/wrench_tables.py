"""Tables of external forces: contacts, thresholds and false alarms."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification.online.external_wrench import (
    COMPONENT_UNITS,
    COMPONENTS,
    ExternalWrench,
)

#: Maximum number of contacts that the terminal shows.
MAX_CONTACTS = 20


def wrench_tables(result: ExternalWrench) -> Iterator[Printed]:
    """Yield the contacts with their wrenches, the thresholds, and the intervals without contact."""
    indices = [COMPONENTS.index(name) for name in result.components]
    headings = (f"{COMPONENTS[k]}\n[{COMPONENT_UNITS[k]}]" for k in indices)
    contacts = []
    for contact in result.contacts[:MAX_CONTACTS]:
        wrench = (f"{contact.wrench[k]:.3g}" for k in indices)
        contacts.append((f"{contact.start:.3f}", f"{contact.end:.3f}", *wrench))
    yield table(
        f"{result.model.mechanism.name}: contacts, with the wrench at the tool where it is largest",
        *("start [s]", "end [s]", *headings),
        rows=contacts,
    )
    if len(result.contacts) > MAX_CONTACTS:
        yield f"{counted(len(result.contacts) - MAX_CONTACTS, 'more contact')}: see --json"
    threshold_rows = []
    for k, (name, unit) in enumerate(zip(*result.freedoms, strict=True)):
        values = (result.threshold[k], result.noise[k], result.offset[k])
        threshold_rows.append((name, unit, *(f"{value:.3g}" for value in values)))
    yield table(
        "Smallest force on each degree of freedom that counts as a contact",
        *("freedom", "unit", "threshold", "noise,\nRMS", "mean"),
        rows=threshold_rows,
    )
    source = "determined from the log" if result.free_is_searched else "as specified"
    yield f"without contact ({source}): {result.free_duration:.4g} s of {result.time[-1] - result.time[0]:.4g} s"
    if result.false_alarms is not None:
        alarms = result.false_alarms
        lower, upper = alarms.interval
        yield (
            f"log without contact: {counted(alarms.alarms, 'false alarm')} in {alarms.duration:.4g} s, "
            f"{alarms.per_hour:.3g} an hour "
            f"(95 % interval {lower:.2g} to {upper:.3g})"
        )
    if len(result.components) < len(COMPONENTS):
        yield f"the wrench at the tool is assumed to have only the components {', '.join(result.components)}"
    yield from doubts(result)
