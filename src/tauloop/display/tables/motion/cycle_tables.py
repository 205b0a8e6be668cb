"""Tables of a cycle: its time with the reason for the time, legs, motors, and the simulation."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.display.tables.motion.fastest_tables import simulation_table
from tauloop.simulation.planned.cycles import Cycle
from tauloop.simulation.planned.fastest import CHANGE_LIMIT


def cycle_tables(result: Cycle) -> Iterator[Printed]:
    """Yield the time, the legs with their limits, the motors, and the simulation."""
    cause = (
        f"{result.reason} of {result.motor}" if result.reason == "rated force" else result.reason
    )
    yield f"Cycle of {result.time:.6g} s, {result.picks_per_minute:.4g} picks per minute; set by: {cause}"
    yield f"limits alone allow {result.fastest:.6g} s"
    if result.reason == "rated force":
        yield f"with all legs slowed equally {result.evenly:.6g} s"
    if result.planned.items > 1:
        yield f"{result.planned.items} items pass during a cycle; the platform meets one of them"
    rows = []
    for leg in result.legs:
        nearest = max(leg.shares, key=lambda name: leg.shares[name])
        limits = dict.fromkeys(item.limit for item in leg.active if item.limit)
        names = ["changes" if name == CHANGE_LIMIT else name for name in limits or (nearest,)]
        times = (1e3 * value for value in (leg.start, leg.duration, leg.least))
        rows.append((leg.name, *times, leg.payload, ", ".join(names), leg.shares[nearest]))
    heads = (
        "leg",
        ("from [ms]", ".1f"),
        ("time [ms]", ".1f"),
        ("shortest [ms]", ".1f"),
        ("load [kg]", "g"),
    )
    yield table(
        "Legs, with the limits reached (or nearest)",
        *heads,
        "limits",
        ("share", ".1%"),
        rows=rows,
    )
    loads = (
        (
            motor.actuator,
            motor.rms,
            motor.simulated,
            motor.rated,
            motor.rated and motor.rms / motor.rated,
            motor.unit,
        )
        for motor in result.motors
    )
    peaks = (
        (
            motor.actuator,
            motor.peak_force,
            motor.unit,
            motor.peak_speed,
            _speed_unit(motor.unit),
            motor.peak_power,
        )
        for motor in result.motors
    )
    yield table(
        "Peaks of the motors",
        "motor",
        ("force", ".4g"),
        "",
        ("speed", ".4g"),
        "",
        ("power [W]", ".4g"),
        rows=peaks,
    )
    columns = (("RMS", ".4g"), ("simulated", ".4g"), ("rated", ".4g"), ("share", ".1%"), "unit")
    yield table("Root mean squares of forces", "motor", *columns, rows=loads)
    yield simulation_table(result)


def _speed_unit(force_unit: str) -> str:
    """Return the unit of a motor's speed for the unit of its force."""
    return "rad/s" if force_unit == "N m" else "m/s"
