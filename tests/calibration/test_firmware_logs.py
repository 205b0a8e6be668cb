"""Measurements of printers' firmware: heights and distances of Klipper, and logs of probing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from conftest import ROOT
from tauloop.calibration import read_measurements
from tauloop.calibration.measurements.instruments import Between, Contact

KOSSEL = ROOT / "examples" / "printers" / "kossel.cfg"
#: The printer that made the heights of the example, mm and degrees.
TRUE = {
    "delta_radius": 0.1756,
    "tower1.angle": math.radians(210.35),
    "tower2.angle": math.radians(329.8),
    "tower1.end_stop": 0.29655,
    "tower2.end_stop": 0.2973,
    "tower3.end_stop": 0.2979,
}
#: Motion per step: 40 mm per revolution of 200 steps, in sixteenths.
STEP = 40.0 / 3200.0 * 1e-3


def test_heights_of_klipper_give_the_printer_that_made_them() -> None:
    """Six unknowns within their error bars, four times the standard deviation."""
    parameters = ("delta_radius", "tower1.angle", "tower2.angle", "tower*.end_stop")
    result = tl.calibrate(KOSSEL, KOSSEL, noise="0.01 mm", parameters=parameters)
    table = result.to_pandas()
    for name, value in TRUE.items():
        deviation = table["deviation"][name]
        assert abs(table["value"][name] - value) < 4.0 * deviation


def test_steps_count_from_the_end_stops(tmp_path: Path) -> None:
    """Distances are between two poses; manual heights are heights too."""
    text = KOSSEL.read_text(encoding="utf-8").split("#*#")[0]
    text += (
        "#*# [delta_calibrate]\n#*# height0 = 0.5\n#*# height0_pos = 100.000,200.500,0\n"
        "#*# manual_height0 = -0.1\n#*# manual_height0_pos = 1,2,3\n"
        "#*# distance0 = 64.2\n#*# distance0_pos1 = 10,20,30\n#*# distance0_pos2 = 11,21,31\n"
    )
    (tmp_path / "printer.cfg").write_text(text, encoding="utf-8")
    heights, distances = read_measurements(
        tmp_path / "printer.cfg", tl.load(KOSSEL), noise="0.01 mm"
    ).series
    assert isinstance(heights.instrument, Contact)
    assert heights.encoders == pytest.approx(STEP * np.array([[100, 200.5, 0], [1, 2, 3]]))
    assert heights.readings[:, 0] == pytest.approx([0.5e-3, -0.1e-3])
    assert heights.labels == ("height0", "manual_height0")
    assert isinstance(distances.instrument, Between)
    assert distances.encoders == pytest.approx(STEP * np.array([[10, 20, 30], [11, 21, 31]]))
    assert distances.readings[:, 0] == pytest.approx([64.2e-3])


@pytest.mark.parametrize(
    "line", ["probe at {x:.3f},{y:.3f} is z={z:.6f}", "Bed X: {x} Y: {y} Z: {z}"]
)
def test_logs_of_probing_are_contacts_where_the_firmware_stopped(tmp_path: Path, line: str) -> None:
    """The motors are those of the nominal printer at the point that the log states (mm)."""
    points = ((0.0, 0.0, 0.12), (10.0, -20.5, -0.3))
    lines = ["Send: G29", *(line.format(x=x, y=y, z=z) for x, y, z in points), "ok"]
    (tmp_path / "probe.log").write_text("\n".join(lines), encoding="utf-8")
    (series,) = read_measurements(tmp_path / "probe.log", tl.load(KOSSEL), noise=1e-5).series
    for k, (x, y, z) in enumerate(points):
        expected = []
        for angle in (210.0, 330.0, 90.0):
            X, Y = (174.75 * f(math.radians(angle)) for f in (math.cos, math.sin))
            top = 297.05 + math.sqrt(333.0**2 - 174.75**2)
            expected.append((top - z - math.sqrt(333.0**2 - (X - x) ** 2 - (Y - y) ** 2)) * 1e-3)
        assert series.encoders[k] == pytest.approx(expected, abs=1e-12)
    assert series.readings[:, 0].tolist() == [0.0, 0.0]
    assert series.labels == ("(0, 0)", "(10, -20.5)")


def test_files_without_measurements_are_refused(tmp_path: Path) -> None:
    machine = tl.load(KOSSEL)
    (tmp_path / "printer.cfg").write_text(KOSSEL.read_text().split("#*#")[0], encoding="utf-8")
    with pytest.raises(tl.InputError, match="has no heights and no distances"):
        read_measurements(tmp_path / "printer.cfg", machine, noise=1e-5)
    (tmp_path / "probe.log").write_text("ok\n", encoding="utf-8")
    with pytest.raises(tl.InputError, match="has no line such as 'probe at"):
        read_measurements(tmp_path / "probe.log", machine, noise=1e-5)
    (tmp_path / "probe.log").write_text("probe at 900,0 is z=0.1\n", encoding="utf-8")
    with pytest.raises(tl.InputError, match="out of reach"):
        read_measurements(tmp_path / "probe.log", machine, noise=1e-5)
    broken = KOSSEL.read_text().replace("height3_pos = ", "height3_pos = 1,")
    (tmp_path / "printer.cfg").write_text(broken, encoding="utf-8")
    with pytest.raises(tl.DescriptionError, match="not three step counts"):
        read_measurements(tmp_path / "printer.cfg", machine, noise=1e-5)
    with pytest.raises(tl.InputError, match="noise: is not given"):
        read_measurements(KOSSEL, machine)
