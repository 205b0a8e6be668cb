"""Machines converted from format to format, formats of installed packages among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.extensions import installed_plugins
from tauloop.formats import load

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(("form", "count"), [("yaml", 1), ("mjcf", 1), ("urdf", 3)])
def test_convert_writes_files_that_load(form: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / {"yaml": "m.yaml", "mjcf": "m.xml", "urdf": "m.urdf"}[form]
    document = tl.convert("rcid", file, tl.ConvertOptions(format=form)).as_dict()
    assert sorted(document["files"]) == sorted(str(path) for path in tmp_path.rglob("*.*"))
    assert len(document["files"]) == count
    assert bool(document["notes"]) == (form != "yaml")
    back = load(file, document["files"][1] if form == "urdf" else None)
    assert len(back.actuators) == len(load("rcid").actuators)


@pytest.mark.parametrize("name", ["m.xml", "m.urdf", "m.sdf"])
def test_a_machine_whose_start_values_are_open_comes_back_in_its_mode(
    name: str, tmp_path: Path
) -> None:
    """Its file gives no angle of the bar that closes the inner loop, and others for A and B: 0.5 rad are missing."""
    machine = tl.load(CASES / "loop_within_a_loop.yaml")
    written = tl.convert(machine, tmp_path / name)
    assert any("starts at an assembled pose" in note for note in written.written.notes)
    sides = [file for file in written.written.files if file.name.endswith(".side.yaml")]
    model, back = tl.Model(machine), tl.Model(load(tmp_path / name, *sides))
    assert back.assembly.notes == ()
    length, force = model.platform_position(model.assembly.q), np.zeros(1)
    for subject in (model, back):
        assert subject.platform_position(subject.assembly.q) == pytest.approx(length, abs=1e-9)
        tool = subject.platform.tool(length).place
        needed = subject.platform.inverse_dynamics(length, force, force).force
        assert tool == pytest.approx(model.platform.tool(length).place, abs=1e-9)
        assert needed == pytest.approx(
            model.platform.inverse_dynamics(length, force, force).force, rel=1e-6
        )


def test_a_target_that_names_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.txt does not determine the format"):
        tl.convert("five_bar", tmp_path / "m.txt")
    with pytest.raises(InputError, match="did you mean mjcf"):
        tl.convert("five_bar", tmp_path / "m.xml", tl.ConvertOptions(format="mjfc"))
    with pytest.raises(InputError, match="'vrml' is unknown"):
        tl.convert("rcid", tmp_path / "m.wrl", tl.ConvertOptions(format="vrml"))
    assert list(tmp_path.iterdir()) == []


#: A package with a format of names alone.
NAMES = """
from pathlib import Path

from tauloop.formats import Format, Written


class Names(Format):
    name, title, endings = "names", "a list of names", (".names",)

    def write(self, mechanism, path: Path) -> Written:
        path.write_text("\\n".join(body.name for body in mechanism.bodies), encoding="utf-8")
        return Written(files=(path,), notes=("only the names of bodies",))


NAMES = Names()
"""


def test_a_package_brings_a_format_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package in its own folder, found by its entry point; converting and loading know its extension."""
    (tmp_path / "bringing.py").write_text(NAMES, encoding="utf-8")
    about = tmp_path / "bringing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: bringing\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[tauloop.formats]\nnames = bringing:NAMES\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed_plugins.cache_clear()
    try:
        conversion = tl.convert("five_bar", tmp_path / "five.names")
        assert conversion.written.notes == ("only the names of bodies",)
        assert (tmp_path / "five.names").read_text().split() == [
            body.name for body in load("five_bar").bodies
        ]
        with pytest.raises(InputError, match="a list of names can only be written"):
            load(tmp_path / "five.names")
    finally:
        installed_plugins.cache_clear()
