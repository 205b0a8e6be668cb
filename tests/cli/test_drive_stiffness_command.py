"""`tauloop log drive-stiffness` prints what its function returns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from command_line import run, run_json
from geared_arm import GEARED_ARM, simulated

import tauloop as tl


def test_the_command_prints_what_the_function_returns(tmp_path: Path) -> None:
    machine, log = tmp_path / "arm.yaml", tmp_path / "log.csv"
    machine.write_text(GEARED_ARM, encoding="utf-8")
    signals = simulated(2e-5)
    heads = [f"{item.quantity}.{item.channel} [{item.unit}]" for item in signals.channels]
    rows = np.stack([signals.time, *(item.values for item in signals.channels)], axis=1)
    np.savetxt(log, rows, delimiter=",", header=",".join(["time [s]", *heads]), comments="")
    words = ("log", "drive-stiffness", machine, log, "--cutoff", "60 Hz", "--drives", "motor")
    result = tl.identify_drive_stiffness(machine, log, cutoff="60 Hz", drives=("motor",))
    printed, expected = run_json(*words), result.as_dict()
    for shown in (printed, expected):
        shown.pop("provenance")
    assert printed == expected
    text = run(*words).output
    assert "Drives of geared_arm" in text
    assert "% from the stiffness in the machine file" in text
    refused = run(*words[:-1], "elbow", code=2).output
    assert "there is no actuator 'elbow'" in refused
