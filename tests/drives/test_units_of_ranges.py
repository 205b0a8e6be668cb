"""Ranges and scales of drive-line searches take units of their parameter or criterion."""

import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.drives.criteria import scales_in_si
from tauloop.drives.parameter_values import ranges_in_si
from tauloop.mechanism.drive_line import DriveLine


@pytest.fixture(scope="module")
def line() -> DriveLine:
    return tl.drives.load_drive("dual_motor_axis")


def test_ranges_have_the_units_of_their_parameters(line: DriveLine) -> None:
    options = tl.TuningOptions(
        bounds="gap=0.1mm:2mm,contact_stiffness=1e6:2e6 N/m,kp=100:300", scales={"swing": 1.0}
    )
    stated = {**options.bounds, "ti": ("500 ms", 2.0)}
    assert ranges_in_si(line.parameters, stated, "bounds") == {
        "gap": (pytest.approx(1e-4), pytest.approx(2e-3)),
        "contact_stiffness": (1e6, 2e6),
        "kp": (100.0, 300.0),
        "ti": (0.5, 2.0),
    }


def test_wrong_units_of_ranges_are_refused_at_once(line: DriveLine) -> None:
    with pytest.raises(InputError) as error:
        ranges_in_si(line.parameters, {"gap": "1s:2s", "kp": "1mm:2mm", "ti": "2s:1s"}, "bounds")
    assert [problem.where for problem in error.value.problems] == [
        "bounds gap",
        "bounds kp",
        "bounds ti",
    ]
    with pytest.raises(InputError, match=r"(?s)bounds: gap ranges from .* two finite limits"):
        tl.fit_drive_line(line, [], tl.DriveLineFitOptions(bounds="gap=1mm:"))
    with pytest.raises(InputError, match="kp: '1' is not LOW:HIGH"):
        tl.TuningOptions(bounds="kp=1", scales={"swing": 1.0})


def test_scales_have_the_units_of_their_criteria(line: DriveLine) -> None:
    scales = {"rise_time": "500ms", "overshoot": "0.5 mm", "energy": "3 N^2 m^2 s", "swing": 2.0}
    assert scales_in_si(line, scales) == {
        "rise_time": 0.5,
        "overshoot": pytest.approx(5e-4),
        "energy": 3.0,
        "swing": 2.0,
    }
    with pytest.raises(InputError, match="scales overshoot: '2s' is a time") as error:
        scales_in_si(line, {"overshoot": "2s", "rise_time": "1mm"})
    assert len(error.value.problems) == 2
