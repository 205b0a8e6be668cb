"""Experiments on a machine file of one's own: every paper's, by night; what is refused, and models of one machine."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop_papers import EXPERIMENTS, experiment, write_page
from tauloop_papers.alike import of_same_parts, one_link_per_cluster, settings_on
from tauloop_papers.gantry_tau.fits import three_freedoms
from tauloop_papers.gantry_tau.settings import SETTINGS as TWO_RUNS
from tauloop_papers.kept import done

#: Other dimensions and masses by experiment, SI.
OWN: dict[str, dict[str, float]] = {
    "nuwar": {"arm_length": 0.27, "plate_mass": 0.3},
    "rcid": {"link_length": 0.106, "base_radius": 0.085},
    "spidermill": {"m1": 55.0},
    "gantry-tau": {"m_p": 14.0, "m_l": 4.5, "track1.track_z": 0.92},
    "gantry-tau-calibration": {"track1.track_z": 0.92, "pair1.B_y": -0.05, "pair2.B_y": -0.25},
    "dual-motor": {"cart_mass": 40.0},
}


def own_file(name: str, folder: Path) -> Path:
    """The paper's machine or drive line in other sizes."""
    item, values, path = EXPERIMENTS[name], OWN[name], folder / "mine.yaml"
    if item.file == "machine":
        tl.new_machine("mine", item.settings.machine, tl.NewMachineOptions(values=values)).write(
            path
        )
        return path
    text = (
        files("tauloop.drives")
        .joinpath("lines", f"{item.settings.line}.yaml")
        .read_text(encoding="utf-8")
    )
    for parameter, value in values.items():
        text, count = re.subn(rf"(?m)^(  {parameter}: {{value: )[^ ]+", rf"\g<1>{value:g}", text)
        assert count == 1
    path.write_text(re.sub(r"(?m)^name: .*", "name: mine", text), encoding="utf-8")
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("name", OWN)
def test_an_experiment_runs_on_a_file_of_ones_own(name: str, tmp_path: Path) -> None:
    """Its result, its page and its C: all are of the file."""
    item, own = EXPERIMENTS[name], own_file(name, tmp_path)
    kept = done(item, tmp_path, settings=settings_on(item, str(own)))
    assert kept.data["machine"] == kept.data["result"]["settings"][item.file] == str(own)
    page = write_page(tmp_path / "page.html", [kept]).read_text(encoding="utf-8")
    assert f"tauloop paper reproduce {name} --machine {own}" in page
    assert all(
        "mine" in made["name"] and kept.measured[made["name"]]["agrees"]
        for made in kept.data["controllers"]
    )


def test_what_is_no_machine_of_the_papers_parts_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no body") as caught:
        settings_on(experiment("rcid"), "delta")
    assert "no parameter" in str(caught.value)
    with pytest.raises(InputError, match="takes no machine"):
        settings_on(experiment("dual-motor-plant"), "delta")
    line = tmp_path / "line.yaml"
    line.write_text("name: line\n", encoding="utf-8")
    with pytest.raises(tl.TauloopError):
        settings_on(experiment("dual-motor"), str(line))


def test_the_papers_own_file_is_the_paper() -> None:
    """Names of shipped machines are as good as files."""
    for item in EXPERIMENTS.values():
        if item.file:
            assert settings_on(item, item.machine_of(item.settings)) == item.settings


def test_other_models_of_a_machine_have_its_dimensions() -> None:
    own = tl.load("nuwar").with_values({"arm_length": 0.25})
    assert of_same_parts("delta", own).value("arm_length") == 0.25
    assert of_same_parts("delta", tl.load("nuwar")) == tl.load("delta")
    longer = tl.load("gantry_tau_6link").with_values(
        {"triple1.length": 1.3, "pair1.A_x": 0.12, "track3.track_z": 0.5}
    )
    model = one_link_per_cluster("gantry_tau_3dof", longer)
    assert model.value("track1.length") == 1.3
    assert model.value("track2.offset_x") == pytest.approx(
        0.12 - longer.value("pair1.B_x"), abs=1e-12
    )
    assert model.value("track3.offset_z") == pytest.approx(0.5, abs=1e-12)


def test_the_lumped_cluster_of_three_is_that_of_its_links() -> None:
    """By hand from Table 3: 4.22 + 2 · 10.37 kg, centres at 0.625 m, I + m c² of the three."""
    model, pi = three_freedoms(TWO_RUNS)
    values = {parameter.name: value for parameter, value in zip(model.parameters, pi, strict=True)}
    assert [values[f"triple.{part}"] for part in "mhJ"] == pytest.approx(
        [24.96, 15.6, 13.0001], abs=1e-9
    )
