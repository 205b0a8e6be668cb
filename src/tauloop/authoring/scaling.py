"""Scaling of a template's default values with the lengths that the user states.

The scaling follows geometric similarity. If lengths are multiplied by s, masses and forces are
multiplied by s^3, torques by s^4 and moments of inertia by s^5. Speeds of similar motions under
gravity are multiplied by sqrt(s). Angles do not change.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.authoring.text import NamedValue, named_values
from tauloop.mechanism.description.units import literal

#: Names of lengths of the work volume (the required workspace) start with this word.
WORK_VOLUME = "stroke"
#: Power of the ratio of lengths, by the SI unit of a value.
POWERS = {
    "m": 1.0,
    "kg": 3.0,
    "kg m^2": 5.0,
    "N": 3.0,
    "N m": 4.0,
    "m/s": 0.5,
}


def scaled_defaults(text: str, stated: Mapping[str, str | float]) -> dict[str, str]:
    """Return the values of a template that the user does not state, scaled with the stated lengths.

    The scale is the geometric mean of the ratios of the stated lengths to the template's. If the
    user states only lengths of the work volume, their largest ratio is used, and at least 1, because
    a large machine can work in a small volume.

    Args:
        text: text of the template.
        stated: values of the user, by name.
    """
    defaults = {item.name: item for item, _ in named_values(text).values() if item.bounds}
    ratio = _ratio(defaults, stated)
    if ratio == 1.0:
        return {}
    scaled: dict[str, str] = {}
    for name, item in defaults.items():
        power = POWERS.get(_dimension(item), 0.0)
        if name in stated or not power or not item.value:
            continue
        scaled[name] = _within_bounds(item, ratio**power)
    return scaled


def smaller_work_volumes(
    text: str, stated: Mapping[str, str | float], factors: tuple[float, ...] = (0.8, 0.6, 0.4)
) -> list[dict[str, str]]:
    """Return the lengths of smaller work volumes, without those that the user states.

    Args:
        text: text of the template.
        stated: values of the user, by name.
        factors: factors for the lengths of the work volume.
    """
    items = [item for item, _ in named_values(text).values()]
    adjustable = [
        item
        for item in items
        if item.name.startswith(WORK_VOLUME) and item.name not in stated and item.value
    ]
    if not adjustable:
        return []
    volumes: list[dict[str, str]] = []
    for factor in factors:
        volumes.append({item.name: _within_bounds(item, factor) for item in adjustable})
    return volumes


def _ratio(defaults: Mapping[str, NamedValue], stated: Mapping[str, str | float]) -> float:
    """Return the ratio of the stated lengths to those of the template."""
    lengths: list[float] = []
    volumes: list[float] = []
    for name, value in stated.items():
        item = defaults.get(name)
        if item is None or _dimension(item) != "m" or not item.value or item.value <= 0.0:
            continue
        number = literal(item.written(value)).value
        if not 0.0 < number < np.inf:
            continue
        (volumes if name.startswith(WORK_VOLUME) else lengths).append(number / item.value)
    if lengths:
        return float(np.exp(np.mean(np.log(lengths))))
    return max([1.0, *volumes])


def _dimension(item: NamedValue) -> str:
    """Return the SI unit of a value; "" for a formula or a plain number."""
    return "" if item.value is None else str(literal(item.text).dimension)


def _within_bounds(item: NamedValue, factor: float) -> str:
    """Return a value times a factor as text, limited to its bounds."""
    if not item.bounds:
        return item.scaled(factor)
    value = (item.value or 0.0) * factor
    if value > literal(item.bounds[1]).value:
        return item.bounds[1]
    if value < literal(item.bounds[0]).value:
        return item.bounds[0]
    return item.scaled(factor)
