"""Drive lines without a compiler: the same runs in Python, and one notice that they are slow."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import tauloop.drives
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import Axis, load_drive, record_axis, simulate_axis
from tauloop.drives.machine.path import DrivenMachine, Variation
from tauloop.formats import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
#: Both routes locate events on their own steps, within tolerances of 1e-7; criteria hold to this
#: share.
SAME = 1e-7
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")


@needs_compiler
@pytest.mark.parametrize("name", ["dual_motor_axis", "single_motor_axis"])
def test_criteria_and_records_are_the_compiled_ones(name: str) -> None:
    line = load_drive(name)
    motion = [
        record_axis(
            Axis(line, interpreted=interpreted), duration=0.6, load=5.0, load_time=0.3, samples=61
        )
        for interpreted in (False, True)
    ]
    times = ("rise_time", "settling_time", "end")
    for key in (*times, "overshoot", "energy", "final_error", "swing", "outcome", "settled"):
        compiled, interpreted = (getattr(record.criteria, key)[0] for record in motion)
        assert interpreted == pytest.approx(compiled, rel=SAME, abs=SAME), key
    assert motion[0].criteria.events[0] > 0
    x = [record.signal("cart.position") for record in motion]
    assert np.abs(x[0]).max() > 0.01
    np.testing.assert_allclose(x[1], x[0], atol=SAME)


def test_batches_divergence_and_sampled_controls_run_interpreted(tmp_path: Path) -> None:
    text = (Path(tauloop.drives.__file__).parent / "lines" / "dual_motor_axis.yaml").read_text()
    (tmp_path / "sampled.yaml").write_text(
        text.replace("  dual:\n", "  sample_time: 5 ms\n  dual:\n")
    )
    axis = Axis(load_drive(tmp_path / "sampled.yaml"), interpreted=True)
    criteria = simulate_axis(axis, {"kp": np.array([150.0, 1e7])}, duration=0.3)
    assert list(criteria.failed) == [False, True]
    if find_compiler() is not None:
        compiled = simulate_axis(
            Axis(load_drive(tmp_path / "sampled.yaml")), {"kp": 150.0}, duration=0.3
        )
        assert criteria.energy[0] == pytest.approx(compiled.energy[0], rel=SAME)


def test_one_notice_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "find_compiler", lambda: None)
    monkeypatch.setattr(library, "find_embedded_compiler", lambda: None)
    with caplog.at_level(logging.WARNING, logger="tauloop"):
        criteria = simulate_axis(Axis(load_drive("single_motor_axis")), duration=0.05)
        assert not criteria.failed.any()
        DrivenMachine(load(EXAMPLE), variation=Variation.RIGID)
    assert len(caplog.records) == 2
    assert all(
        "slower" in r.getMessage() and "none was found" in r.getMessage() for r in caplog.records
    )
