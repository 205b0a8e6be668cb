"""The figure of a step of a drive line."""

from __future__ import annotations

import tauloop as tl
from tauloop.drives import load_drive
from tauloop.report.drive_figure import drive_figure


def test_a_figure_has_the_units_of_its_line() -> None:
    step = tl.drive(load_drive("dual_motor_axis"), tl.DriveOptions(duration=0.2))
    labels = [axes.get_ylabel().replace("\n", " ") for axes in drive_figure(step).axes]
    assert labels == ["position [mm]", "error, magnified [mm]", "torque [N m]", "deflection [mm]"]
