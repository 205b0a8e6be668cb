"""What users add, from outside: every example passes its check, every check sees a fault, packages bring their own."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tauloop
from tauloop import load
from tauloop.common.extensions import GROUPS
from tauloop.display import PARTS
from tauloop.equations.formulations import NEWTON_EULER
from tauloop.testing import (
    ConformanceError,
    check_controller,
    check_estimator,
    check_format,
    check_formulation,
    check_instrument,
    check_integrator,
    check_joint,
    check_loss,
    check_report_part,
    check_route,
)

FOLDER = Path(__file__).parents[2] / "examples" / "extensions"
EXAMPLES = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))


def example(name: str, *, run: bool = False) -> SimpleNamespace:
    """Names of an example; with `run` what it does as a program is done too."""
    return SimpleNamespace(
        **runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__" if run else name)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_an_extension_passes_its_own_check(
    name: str, capsys: pytest.CaptureFixture[str]
):
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
            return (
                load("four_bar")
                if path.stat().st_size == 0
                else load(str(path.read_bytes()[10**9]))
            )

    with pytest.raises(
        ConformanceError,
        match=r"(?s)the written file raises IndexError.*0% of a file is read as a machine.*70% of a file raises",
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
            result = super().estimate_from(regression)
            return replace(
                result, values=result.values * 1.001, covariance=result.covariance * 1e-6
            )

    with pytest.raises(
        ConformanceError,
        match=r"(?s)exact data.*standard deviations.*instruments: give standard deviations",
    ):
        check_estimator(Wrong())


def test_an_instrument_whose_error_is_not_zero_at_its_readings_is_seen():
    class Wrong(example("instrument").String):
        def error(self, scene, reading):
            return super().error(scene, reading * 1.01)

    with pytest.raises(ConformanceError, match="at simulated readings"):
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
        def force_callback(self, loop):
            return lambda time, measured, speed, force: 0.0 * force

    with pytest.raises(ConformanceError, match=r"has an error of|run"):
        check_controller(Wrong(bandwidth=80.0), load("delta"))


def test_a_formulation_with_wrong_forces_is_seen():
    def forces(*parts):
        return 1.001 * NEWTON_EULER.forces(*parts)

    with pytest.raises(ConformanceError, match="serial_chain, seed 0"):
        check_formulation(replace(NEWTON_EULER, forces=forces), seeds=1)


def installed(folder: Path, name: str, example: str, entries: str, *, code: str = "") -> None:
    """Leave in a folder what pip does: a module, and the metadata of the distribution that it came with."""
    (folder / f"{name}.py").write_text(
        (FOLDER / f"{example}.py").read_text(encoding="utf-8") + code
    )
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entries)


def output_with(folder: Path, *arguments: str) -> str:
    """What Python prints, where packages are installed in a folder."""
    environment = {
        "PYTHONPATH": f"{folder}:{Path(sys.modules['tauloop'].__file__).parents[1]}",
        "PATH": os.defpath,
    }
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_package_brings_a_loss(tmp_path: Path):
    entries = (
        "[tauloop.losses]\ntukey = weights:TUKEY\nhuber = weights:TUKEY\nclass = "
        "weights:Tukey\nlost = nowhere:IT\n"
    )
    installed(tmp_path, "weights", "loss", entries, code="TUKEY = Tukey()\n")
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
    assert output_with(tmp_path, "-c", code).splitlines() == [
        "['squares', 'huber', 'cauchy', 'class', 'lost', 'tukey'] Tukey True False",
        "class: the plugin of weights is not an instance of `calibration.Loss`",
        "lost: the plugin of weights cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    ]


def test_an_installed_package_brings_an_estimator(tmp_path: Path):
    installed(
        tmp_path,
        "medians",
        "estimator",
        "[tauloop.estimators]\nlad = medians:LAD\n",
        code="LAD = LeastAbsoluteDeviations()",
    )
    code = """
from tauloop import IdentificationOptions, InputError
from tauloop.identification.chosen import chosen_estimator
for name in ("wls", "lad", "lot"):
    try:
        print(type(chosen_estimator(IdentificationOptions(estimator=name))).__name__)
    except InputError as error:
        print(error)
"""
    own, brought, *refused = output_with(tmp_path, "-c", code).splitlines()
    assert (own, brought) == ("WeightedLeastSquares", "LeastAbsoluteDeviations")
    assert "ols, wls, irls, tls, iv, lad" in " ".join(refused)


SPINDLE = """
format: tauloop-machine/1
name: spindle
description: a nut that a screw moves, and the carriage that it carries
gravity: [0, 0, -9.81 m/s^2]
provenance: {status: chosen, source: a test}
bodies:
  carriage: {mass: 3 kg, center: [0, 0, 0], inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
  nut: {mass: 2 kg, center: [0, 0, 0], inertia: {xx: 0.02 kg m^2, yy: 0.02 kg m^2, zz: 0.03 kg m^2}}
joints:
  rail: {type: prismatic, axis: z, parent: base, child: carriage}
  bearing: {type: revolute, axis: z, parent: carriage, child: nut}
  spindle: {type: screw, axis: z, parent: base, child: nut, CUT}
actuators: {motor: {on: spindle}}
platform: {body: carriage, independent: [rail]}
"""
#: tau = (J + m r^2) alpha + m g r, with r the lead over a turn: 5 kg, 0.03 kg m^2, 0.01 m a turn.
DRIVEN = """
import sys
import numpy as np
from tauloop import Model, TauloopError, convert, load
from tauloop.equations.formulations import FORMULATIONS
mechanism, r, alpha = load(sys.argv[1]), 0.01 / (2 * np.pi), 7.0
expected = (0.03 + 5 * r**2) * alpha + 5 * 9.81 * r
for formulation in FORMULATIONS:
    model = Model(mechanism, formulation=formulation.name)
    angle = np.array([[0.4], [9.0], [-25.0]])  # of several turns too
    forces = model.actuators.inverse_dynamics(angle, 2 + 0 * angle, alpha + 0 * angle)
    state = model.actuators.kinematics(angle)
    assert np.abs(forces.force - expected).max() < 1e-12 * expected, (formulation.name, forces.force, expected)
    assert np.abs(state.coordinate("rail") - r * angle[:, 0]).max() < 1e-12
print(len(FORMULATIONS), model.assembly.mobility)
try:
    convert(sys.argv[1], sys.argv[1] + ".urdf")
except TauloopError as error:
    print(error)
"""


@pytest.mark.parametrize("cut", ["cut: no", "cut: yes"])
def test_an_installed_package_brings_a_joint_that_closes_a_loop(tmp_path: Path, cut: str):
    installed(tmp_path, "screws", "joint", "[tauloop.joints]\nscrew = screws:SCREW\n")
    (tmp_path / "spindle.yaml").write_text(SPINDLE.replace("CUT", cut))
    first, *rest = output_with(tmp_path, "-c", DRIVEN, str(tmp_path / "spindle.yaml")).splitlines()
    assert first == "4 1"
    assert "a screw joint (from a plugin) is not a chain of hinges, slides and balls" in rest[0]


def test_a_joint_that_is_no_rotation_or_begins_elsewhere_is_seen():
    kind = example("joint").SCREW
    right = kind.placement
    with pytest.raises(ConformanceError, match=r"(?s)R\(0\).*return a rotation R"):
        check_joint(
            replace(kind, placement=lambda axes, x: (1.01 * right(axes, x)[0], right(axes, x)[1]))
        )
    with pytest.raises(ConformanceError, match=r"p\(0\)"):
        check_joint(
            replace(kind, placement=lambda axes, x: (right(axes, x)[0], right(axes, x)[1] + 0.1))
        )
    # where an axis at right angles is a fixed one
    with pytest.raises(ConformanceError, match="about y"):
        check_joint(
            replace(
                kind, placement=lambda axes, x: (right(axes, x)[0], right(axes, x)[1] / axes[0][0])
            )
        )
    twice = {"coordinates": ("x", "y"), "velocities": ("x", "y"), "angular": (True, True)}
    with pytest.raises(ConformanceError, match="move the child in fewer than 2 directions"):
        check_joint(replace(kind, **twice, placement=lambda axes, x: right(axes, x[:1] + x[1:])))
    with pytest.raises(ConformanceError, match=r"(?s)tilt cannot have start values.*is missing"):
        check_joint(replace(kind, **twice | {"coordinates": ("x", "tilt")}, placement=None))


def test_an_installed_package_brings_a_part_of_reports(tmp_path: Path):
    installed(tmp_path, "masses", "report_part", "[tauloop.parts]\nmasses = masses:MASSES\n")
    command = "-c", "from tauloop.cli import main; main()", "check", "four_bar"
    assert "Masses" not in output_with(tmp_path / "empty", *command)
    assert re.search(r"(?s)ok\n.*Masses.*crank .*0.12", output_with(tmp_path, *command))
    document = json.loads(output_with(tmp_path, *command, "--json"))["parts"]["masses"]
    assert document == {"crank": 0.12, "coupler": 0.3, "rocker": 0.24}


def test_a_part_of_reports_draws_its_figure_beside_the_commands_own(tmp_path: Path):
    code = """

class Bars(Masses):
    name, takes = "bars", "View"

    def data(self, result):
        return {"a": 1.0}


BARS = Bars()
"""
    installed(tmp_path, "masses", "report_part", "[tauloop.parts]\nbars = masses:BARS\n", code=code)
    command = (
        "from tauloop.cli import main; main()",
        "view",
        "four_bar",
        "--out",
        str(tmp_path / "arm.png"),
    )
    text = output_with(tmp_path, "-c", *command)
    pictures = sorted(tmp_path.glob("*.png"))
    assert [path.name for path in pictures] == ["arm-bars.png", "arm.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert "arm-bars.png" in text


def test_a_part_of_reports_that_changes_or_is_no_part_is_seen():
    result = tauloop.check(load("four_bar"))

    class Wrong(example("report_part").Masses):
        name, takes = "my masses", "Inspektion"

        def tables(self, result):
            return ()

        def data(self, result):
            return {"a": object()}

        def figure(self, result):
            return 1

    with pytest.raises(
        ConformanceError,
        match=r"(?s)not an identifier.*Inspektion.*print nothing.*no plain form.*is a int",
    ):
        check_report_part(Wrong(), result)


def test_parts_of_tauloop_take_results_that_there_are_by_functions_that_there_are():
    package = Path(tauloop.__path__[0])
    classes = re.findall(
        r"^class (\w+)", "\n".join(path.read_text("utf-8") for path in package.rglob("*.py")), re.M
    )
    assert len(PARTS) > 25
    for part in PARTS.values():
        assert classes.count(part.takes) == 1
        for place in filter(None, vars(part)["functions"].values()):
            module, _, function = place.partition(":")
            assert callable(getattr(import_module(module), function or module.rpartition(".")[2]))


def test_the_groups_of_entry_points_are_documented():
    page = (FOLDER.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    assert [group for group in GROUPS if f"`{group}`" not in page] == []
    assert [name for name in EXAMPLES if f"| `{name}.py` |" not in page] == []
