"""Identified values in the user's machine file: what the data determine changes, the rest remains."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path

import numpy as np
import pytest
from identifying import without_faults

import tauloop as tl
from tauloop.formats import machine_path
from tauloop.identification import PreparationOptions
from tauloop.identification.parameters.write_back import (
    identified_mechanism,
    mechanism_with_estimates,
)

TRUE = {"plate_mass": 0.35, "arm_mass": 0.9}
#: Noise of the torques, N m; it moves the masses by less than this share.
NOISE, MASS_ERROR = 0.01, 0.03
#: Values of a machine's own parameters are solved for, relative.
SOLVED = 1e-10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a user's machine file, and a log of the true machine."""
    path = tmp_path_factory.mktemp("user")
    text = machine_path("delta").read_text(encoding="utf-8").replace("name: delta", "name: mine")
    text = text.replace("plate_mass: 0.2807 kg", "plate_mass: 0.2807 kg   # weighed at home")
    (path / "mine.yaml").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(2)
    time = np.linspace(0.0, 2.0, 801)
    x, v, a = np.zeros((3, len(time), 3))
    x[:, 2] = -0.5
    for harmonic in range(1, 6):
        w = np.pi * harmonic
        sine, cosine = rng.normal(size=(2, 3)) * 0.035 / harmonic
        s, c = np.sin(w * time)[:, None], np.cos(w * time)[:, None]
        x += sine * s + cosine * c
        v += w * (sine * c - cosine * s)
        a -= w * w * (sine * s + cosine * c)
    motion = tl.inverse_dynamics(tl.load(path / "mine.yaml").with_values(TRUE), x, v, a, time=time)
    log = motion.log()
    for name in log.data_vars:
        if str(name).startswith("force"):
            log[name] = log[name] + NOISE * rng.normal(size=log[name].shape)
    tl.logs.write_log(path / "log.csv", log)
    return path


@pytest.fixture(scope="module")
def result(folder: Path) -> tl.identification.MachineIdentification:
    """The identification of the parameters of the file."""
    with without_faults():
        return tl.identify(folder / "mine.yaml", folder / "log.csv", unknowns="file")


def test_only_values_that_the_log_determines_change_in_the_file(
    folder: Path, result: tl.identification.MachineIdentification
) -> None:
    """Without consistent parameters: comments, notes, legs and all other lines stay."""
    machine = result.mechanism()
    tl.convert(machine, folder / "identified.yaml")
    before, after = (
        (folder / name).read_text(encoding="utf-8") for name in ("mine.yaml", "identified.yaml")
    )
    changed = [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] == "+"]
    keys = {line[2:].split(":")[0].strip() for line in changed}
    assert keys == {"plate_mass", "arm_mass", "arm_inertia", "elbow_mass", "forearm_mass"}
    assert any("# weighed at home" in line for line in changed)
    again = tl.load(folder / "identified.yaml")
    for name, value in TRUE.items():
        assert again.parameters[name].value == pytest.approx(value, rel=MASS_ERROR)
        assert again.parameters[name].source == "identified from log.csv"
    fit = result.whole_log or result.identification
    theta = np.array([again.parameters[name].value for name in fit.base.parameters])
    assert fit.base.regrouping @ theta == pytest.approx(fit.values, rel=SOLVED)


def test_what_the_data_do_not_determine_keeps_its_value(
    folder: Path, result: tl.identification.MachineIdentification
) -> None:
    """Estimates that the file already gives change nothing; bounds of the file are kept."""
    machine, base = result.model.mechanism, result.identification.base
    estimates = base.regrouping @ np.array([machine.parameters[x].value for x in base.parameters])
    same = mechanism_with_estimates(machine, base, estimates)
    values = [same.parameters[name].value for name in machine.parameters.names]
    assert values == pytest.approx([p.value for p in machine.parameters], rel=SOLVED)
    estimates[0] = -1.0
    bounded = tl.loads(
        (folder / "mine.yaml")
        .read_text(encoding="utf-8")
        .replace("plate_mass: 0.2807 kg", "plate_mass: {value: 0.2807 kg, bounds: [0 kg, 1 kg]}")
    )
    with pytest.raises(
        tl.InputError, match="plate_mass: is identified as -1 kg, outside its bounds"
    ):
        mechanism_with_estimates(bounded, base, estimates)


def test_consistent_parameters_stay_in_the_expressions_that_can_give_them(folder: Path) -> None:
    """Products of masses and lengths are solved for; others become parameters of their own."""
    machine = tl.load(folder / "mine.yaml")
    model = tl.Model(machine)
    expected = {"plate_mass": 0.31, "arm_mass": 1.1, "arm_inertia": 0.02}
    new = identified_mechanism(model, tl.Model(machine.with_values(expected)).pi, source="a log")
    assert new.parameters.names == machine.parameters.names
    for name, value in expected.items():
        assert new.parameters[name].value == pytest.approx(value, rel=SOLVED)
    unequal = np.array(model.pi)
    names = [parameter.name for parameter in model.parameters]
    unequal[names.index("leg1.arm.m")] *= 1.01
    freed = identified_mechanism(model, unequal)
    assert freed.parameters.names != machine.parameters.names
    assert tl.Model(freed).pi == pytest.approx(unequal, rel=SOLVED)


def test_base_parameters_of_bodies_are_not_enough(folder: Path) -> None:
    options = tl.IdentificationOptions(preparation=PreparationOptions(cutoff=30.0))
    with without_faults():
        result = tl.identify(folder / "mine.yaml", folder / "log.csv", options)
    with pytest.raises(tl.InputError, match="only combinations of them"):
        result.mechanism()
