"""Tables of motor sizing: loads, and the lightest motors and gears of a catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.dynamics.motor_loads import RPM_PER_RAD_S, ActuatorLoad
from tauloop.dynamics.motor_sizing import MotorSizing, is_within
from tauloop.mechanism.suggestions import listing

#: Maximum number of listed candidates for each actuator; JSON contains all.
MAX_CANDIDATES = 5


def motor_tables(sizing: MotorSizing) -> Iterator[Printed]:
    """Yield the loads of all motors, and candidates for all rotary and for all linear actuators."""
    for is_rotary in (True, False):
        loads = [load for load in sizing.loads if load.is_rotary == is_rotary]
        if loads:
            yield _loads("N m" if is_rotary else "N", loads, is_rotary=is_rotary)
    if sizing.catalogue is not None:
        for is_rotary in (True, False):
            loads = [load for load in sizing.loads if load.is_rotary == is_rotary]
            yield from _candidates(sizing, loads)
        yield (
            "torque, heat (continuous torque), speed and load (of the gear): fraction of the limit that the "
            "motion uses; inertia: inertia of the load over inertia of rotor and gear"
        )
        if sizing.unweighed:
            yield (
                f"without a mass in the catalogue: {listing(sizing.unweighed)}; these are listed after "
                "motors and gears with a known mass, ranked by the use of their limits"
            )
        yield f"source of the catalogue: {sizing.catalogue.source.strip()}"
    yield from doubts(sizing)


def _candidates(sizing: MotorSizing, loads: list[ActuatorLoad]) -> Iterator[Printed]:
    """Yield the candidates for all actuators of a kind, and the lightest for each."""
    if not loads:
        return
    candidates = sizing.for_all(is_rotary=loads[0].is_rotary)
    suitable = [c for c in candidates if is_within(c, sizing.options)]
    subject = loads[0].name if len(loads) == 1 else f"all {len(loads)} actuators"
    if suitable:
        yield table(
            f"Motors for {subject} ({len(suitable)} of {len(candidates)} suitable)",
            "motor",
            "gear",
            ("kg", ".3g"),
            ("torque", ".0%"),
            ("heat", ".0%"),
            ("speed", ".0%"),
            ("load", ".0%"),
            ("inertia", ".3g"),
            rows=[
                (c.motor, c.gear, c.mass, c.torque, c.heat, c.speed, c.gear_load, c.inertia_ratio)
                for c in suitable[:MAX_CANDIDATES]
            ],
        )
    else:
        nearest = min(candidates, key=lambda c: c.use)
        yield (
            f"no motor of the catalogue suits {subject}: {nearest.motor} with {nearest.gear} comes closest, "
            f"with a utilization of {nearest.use:.0%} ({nearest.limited_by})"
        )
    for load in loads if len(loads) > 1 else []:
        if lightest := sizing.suitable(load.name)[:1]:
            rank = "lightest" if lightest[0].mass is not None else "least used"
            yield f"{rank} for {load.name}: {lightest[0].motor} with {lightest[0].gear}"


def _loads(unit: str, loads: list[ActuatorLoad], *, is_rotary: bool) -> Printed:
    """Return a table of the loads of rotary or of linear motors."""
    speed_unit, factor = ("rpm", RPM_PER_RAD_S) if is_rotary else ("m/s", 1.0)
    return table(
        "Motor loads",
        "motor",
        (f"peak [{unit}]", ".4g"),
        (f"RMS [{unit}]", ".4g"),
        (f"speed [{speed_unit}]", ".4g"),
        ("power [W]", ".4g"),
        ("work [J]", ".4g"),
        ("returned [J]", ".4g"),
        ("inertia ratio", ".3g"),
        rows=[
            (
                load.name,
                load.peak_force,
                load.rms_force,
                factor * load.peak_speed,
                load.peak_power,
                load.work,
                load.returned_work,
                load.inertia_ratio,
            )
            for load in loads
        ],
    )
