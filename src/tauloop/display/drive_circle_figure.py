"""The picture of a circular test: radial deviation round the circle, magnified, as a ball-bar draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.display.figures import (
    FAINT,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
    blank,
    clean,
)
from tauloop.drives.machine.circle import CircleTest
from tauloop.drives.machine.path import Variation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: One colour for each variation.
COLOURS = {
    Variation.AS_DESCRIBED: PREDICTED,
    Variation.ONE_MOTOR: RESIDUAL,
    Variation.NO_PLAY: "#6a9a5b",
    Variation.RIGID: MEASURED,
}
#: The told circle is drawn this many times as large as the largest deviation.
ROOM = 2.2


def circle_figure(test: CircleTest) -> Figure:
    """Polar plot of the radial deviations on the told circle, and the same against the angle."""
    title = (
        f"{test.machine}: circle of {1e3 * test.circle.radius:g} mm at {test.circle.speed:g} m/s"
    )
    figure = blank(10.4, 5.6, title, left=0.04)
    largest = max(
        (1e6 * float(np.abs(lap.radial).max()) for lap in test.laps.values()), default=1.0
    )
    base = ROOM * largest
    polar: Any = figure.add_axes((0.03, 0.1, 0.45, 0.76), projection="polar")
    flat = figure.add_axes((0.57, 0.14, 0.41, 0.66))
    around = np.linspace(0, 2 * np.pi, 361)
    polar.plot(around, np.full(361, base), color=TEXT, linewidth=0.8, linestyle=(0, (4, 3)))
    for variation, lap in test.laps.items():
        angle, radial = (
            np.append(lap.angle, lap.angle[0] + 2 * np.pi),
            1e6 * np.append(lap.radial, lap.radial[0]),
        )
        label = f"{variation.label}: {1e6 * lap.deviation:.3g} um"
        polar.plot(angle, base + radial, color=COLOURS[variation], linewidth=1.3)
        flat.plot(
            np.degrees(lap.angle),
            1e6 * lap.radial,
            color=COLOURS[variation],
            linewidth=1.2,
            label=label,
        )
    ring = _round(largest)
    rings = [base - ring, base, base + ring]
    polar.set_yticks(rings, [f"-{ring:g} um", "0", f"+{ring:g} um"], fontsize=SMALL, color=TEXT)
    polar.set_ylim(0, base + 1.25 * largest)
    polar.set_rlabel_position(67)
    polar.set_xticks(np.radians(np.arange(0, 360, 45)))
    polar.tick_params(labelsize=SMALL, labelcolor=TEXT)
    polar.grid(color=FAINT, linewidth=0.5)
    polar.spines["polar"].set_visible(False)
    first, second = test.circle.columns
    note = f"deviation x {1e6 * test.circle.radius / base:.0f} on the circle; 0 deg along {first}, 90 along {second}"
    figure.text(0.04, 0.03, note, fontsize=SMALL, color=TEXT)
    clean(flat)
    flat.set_xlim(0, 360)
    flat.set_xticks(np.arange(0, 361, 45))
    flat.axhline(0.0, color=FAINT, linewidth=1.0)
    flat.set_xlabel("angle on the circle [deg]", fontsize=NORMAL, color=TEXT)
    flat.set_ylabel("radial deviation [um]", fontsize=NORMAL, color=TEXT)
    flat.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.01),
        ncols=2,
        fontsize=SMALL,
        labelcolor=TEXT,
        frameon=False,
        title="circular deviation",
        title_fontsize=SMALL,
        alignment="left",
    )
    return figure


def _round(value: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that is not above a value."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-12)))
    return float(max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-12)))
