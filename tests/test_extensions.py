"""What users add, from outside: every example passes its check, every check sees a fault, packages bring their own."""

from __future__ import annotations

import runpy
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tauloop import load
from tauloop.equations.formulations import NEWTON_EULER
from tauloop.extensions import GROUPS
from tauloop.testing import (
    ConformanceError,
    check_controller,
    check_estimator,
    check_format,
    check_formulation,
    check_instrument,
    check_integrator,
    check_loss,
    check_route,
)

FOLDER = Path(__file__).parents[1] / "examples" / "extensions"
EXAMPLES = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))


def example(name: str, *, run: bool = False) -> SimpleNamespace:
    """Names of an example; with `run` what it does as a program is done too."""
    return SimpleNamespace(**runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__" if run else name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_an_extension_passes_its_own_check(name: str, capsys: pytest.CaptureFixture[str]):
    example(name, run=True)
    assert capsys.readouterr().out.count("\n") == 1


def test_a_format_that_gives_another_machine_or_reads_anything_is_seen():
    class Wrong(example("format").Packed):
        name, endings = "two words", (".GZ",)

        def read(self, path, side, options):
            return load("four_bar")

    with pytest.raises(ConformanceError, match=r"(?s)name.*endings.*claims.*serial_chain"):
        check_format(Wrong())

    class Careless(example("format").Packed):
        def read(self, path, side, options):
            return load("four_bar") if path.stat().st_size == 0 else load(str(path.read_bytes()[10**9]))

    with pytest.raises(
        ConformanceError,
        match=r"(?s)its own file ends in IndexError.*0% of a file is read as a machine.*70% of a file ends",
    ):
        check_format(Careless())


def test_a_loss_with_a_wrong_slope_is_seen():
    class Wrong(example("loss").Tukey):
        def rho(self, z: np.ndarray) -> np.ndarray:
            return super().rho(z) * [[1.0], [1.01], [1.0]]

    with pytest.raises(ConformanceError, match=r"(?s)rho\(0\).*rho'"):
        check_loss(Wrong())


def test_an_estimator_that_is_off_is_seen():
    class Wrong(example("estimator").LeastAbsoluteDeviations):
        def estimate_from(self, regression):
            found = super().estimate_from(regression)
            return replace(found, values=found.values * 1.001, covariance=found.covariance * 1e-6)

    with pytest.raises(ConformanceError, match=r"(?s)exact data.*standard deviations"):
        check_estimator(Wrong())


def test_an_instrument_whose_error_is_not_zero_at_its_readings_is_seen():
    class Wrong(example("instrument").String):
        def error(self, scene, reading):
            return super().error(scene, reading * 1.01)

    with pytest.raises(ConformanceError, match="at its own readings"):
        check_instrument(Wrong(name="string", eye=(0.1, 0.2, 0.3)), load("delta"))


def test_an_integrator_of_lower_order_is_seen():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong(example("integrator").BogackiShampine):
        @property
        def method(self):
            right = super(Wrong, self).method
            return replace(right, tableau=replace(right.tableau, A=right.tableau.A * 1.01))

    with pytest.raises(ConformanceError, match="coordinates"):
        check_integrator(Wrong(), load("four_bar"))


def test_a_route_with_wrong_rates_is_seen():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong(example("route").StabilisedAndProjected):
        def encoder(self, model):
            return lambda q, v: [q, v + 1e-3]

    with pytest.raises(ConformanceError, match=r"velocities|unreachable"):
        check_route(Wrong(), load("four_bar"))


def test_a_controller_that_lets_go_is_seen():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wrong(example("controller").PID):
        def correction(self, loop):
            return lambda time, measured, speed, force: 0.0 * force

    with pytest.raises(ConformanceError, match=r"strays|run"):
        check_controller(Wrong(bandwidth=80.0), load("delta"))


def test_a_formulation_with_wrong_forces_is_seen():
    def forces(*parts):
        return 1.001 * NEWTON_EULER.forces(*parts)

    with pytest.raises(ConformanceError, match="serial_chain, seed 0"):
        check_formulation(replace(NEWTON_EULER, forces=forces), seeds=1)


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """A folder as pip leaves it: a module, and the metadata of the distribution that it came with."""
    (tmp_path / "weights.py").write_text((FOLDER / "loss.py").read_text(encoding="utf-8") + "TUKEY = Tukey()\n")
    metadata = tmp_path / "weights-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: weights\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tauloop.losses]\ntukey = weights:TUKEY\nhuber = weights:TUKEY\nclass = weights:Tukey\nlost = nowhere:IT\n"
    )
    return tmp_path


def test_an_installed_package_brings_a_loss(brought: Path):
    code = """
from tauloop import InputError
from tauloop.calibration import Huber
from tauloop.calibration.solving.losses import LOSSES
print([*LOSSES], type(LOSSES["tukey"]).__name__, LOSSES["huber"] == Huber(), "nothing" in LOSSES)
for name in ("class", "lost"):
    try:
        LOSSES[name]
    except InputError as error:
        print(str(error).splitlines()[0])
"""
    environment = {"PYTHONPATH": f"{brought}:{Path(sys.modules['tauloop'].__file__).parents[1]}", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['squares', 'huber', 'cauchy', 'class', 'lost', 'tukey'] Tukey True False",
        "class: what weights brings is not a `calibration.Loss`, ready to be used",
        "lost: weights brings it, and cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    ]


def test_the_groups_of_entry_points_are_documented():
    page = (FOLDER.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    assert [group for group in GROUPS if f"`{group}`" not in page] == []
    assert [name for name in EXAMPLES if f"examples/extensions/{name}.py" not in page] == []
