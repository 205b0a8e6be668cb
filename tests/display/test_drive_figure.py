"""Figures of drive lines: a step, and how play shows at the tool."""

from __future__ import annotations

import numpy as np

import tauloop as tl
from tauloop.display.renderers.result_figures import play_figure, steps_figure
from tauloop.drives import load_drive
from tauloop.drives.machine.workflow import play_section


def test_a_figure_has_the_units_of_its_line() -> None:
    step = tl.simulate_drive_line(load_drive("dual_motor_axis"), tl.DriveOptions(duration=0.2))
    labels = [axes.get_ylabel() for axes in steps_figure(step).axes]
    assert labels[:4] == ["position [mm]", "error [mm]", "torque [N m]", "deflection [mm]"]


def test_steps_that_are_compared_have_the_same_scales() -> None:
    line = load_drive("dual_motor_axis")
    steps = [
        tl.simulate_drive_line(line, tl.DriveOptions(duration=0.2, step=step))
        for step in (0.01, 0.05)
    ]
    figure = steps_figure(*steps)
    for left, right in zip(figure.axes[2:8:2], figure.axes[3:8:2], strict=True):
        assert left.get_title(loc="left") == right.get_title(loc="left")
        assert left.get_ylim() == right.get_ylim()


def test_the_play_of_a_machine_that_turns_is_drawn_with_whole_labels() -> None:
    """Angles stand in place of the platform's quaternion; rods of the hexapod are alike, and so are their errors."""
    section = play_section(tl.load("hexapod"), tl.BacklashOptions(plane=("x", "y")))
    assert section.workspace.fixed["platform.rz"] == 0.0
    worst = section.data["worst"].to_numpy()
    assert np.isfinite(worst).all()
    assert worst.max() < 1.1 * worst.min()
    labels = 0
    for axes in play_figure(section, title="play").axes:
        bounds = np.array([axes.get_xlim(), axes.get_ylim()])
        for text in axes.texts:
            share = (np.array(text.get_position()) - bounds[:, 0]) / np.ptp(bounds, axis=1)
            assert ((share > 0.05) & (share < 0.95)).all()
            labels += 1
    assert labels > 10
