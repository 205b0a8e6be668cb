"""The same text with larger or smaller numbers: notes, findings and results of a reader do not depend on the size."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop import Model
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.formats.options import ImportOptions
from tauloop.mechanism import Mechanism

#: Rounding of forces, as a share of them.
SAME = 1e-12
#: What an exporter leaves of a zero, and a length that an engineer means, as shares of the machine.
ROUNDED, MEANT = "3e-14", "1e-9"
SIZES = [1e-6, 1e3]

URDF = """<robot name="arm">
  <link name="ground"/>
  <link name="upper"><inertial><origin xyz="L{0.1} 0 L{ROUNDED}"/><mass value="M{2}"/>
    <inertia ixx="I{0.01}" iyy="I{0.02}" izz="I{0.02}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 L{0.2} 0"/><mass value="M{1}"/>
    <inertia ixx="I{0.01}" iyy="I{0.02}" izz="I{0.02}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="ground"/><child link="upper"/>
    <origin xyz="L{ROUNDED} L{MEANT} L{0.5}"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="10" velocity="5"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="lower"/>
    <origin xyz="L{0.3} 0 0"/><axis xyz="1 0 0"/>
    <limit lower="L{-0.2}" upper="L{0.2}" effort="10" velocity="5"/></joint>
</robot>"""
#: A link as light as exporters write one that stands for a frame, on which a loop ends.
TIP = """  <link name="tip"><inertial><mass value="M{1e-8}"/>
    <inertia ixx="I{1e-9}" iyy="I{1e-9}" izz="I{1e-9}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tip"/></joint>
  <loop_joint name="pin" type="spherical"><link1 link="ground" xyz="L{0.3} L{MEANT} L{0.5}"/>
    <link2 link="tip" xyz="0 0 0"/></loop_joint>
"""

SDF = """<sdf version="1.9"><world name="w"><gravity>0 0 L{-9.81}</gravity><model name="arm">
  <link name="upper"><pose>L{ROUNDED} L{MEANT} L{0.5} 0 0 0</pose>
    <inertial><pose>L{0.1} 0 L{ROUNDED} 0 0 0</pose><mass>M{2}</mass>
    <inertia><ixx>I{0.01}</ixx><iyy>I{0.02}</iyy><izz>I{0.02}</izz></inertia></inertial></link>
  <link name="lower"><pose relative_to="upper">L{0.3} 0 0 0 0 0</pose>
    <inertial><pose>0 L{0.2} 0 0 0 0</pose><mass>M{1}</mass>
    <inertia><ixx>I{0.01}</ixx><iyy>I{0.02}</iyy><izz>I{0.02}</izz></inertia></inertial></link>
  <frame name="near" attached_to="upper"><pose>L{0.3} L{1e-8} 0 0 0 0</pose></frame>
  <frame name="far" attached_to="upper"><pose>L{0.3} L{1e-3} 0 0 0 0</pose></frame>
  <joint name="shoulder" type="revolute"><parent>world</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper><effort>10</effort></limit></axis></joint>
  <joint name="slide" type="prismatic"><parent>FRAME</parent><child>lower</child>
    <axis><xyz>1 0 0</xyz><limit><lower>L{-0.2}</lower><upper>L{0.2}</upper><effort>9</effort></limit></axis></joint>
</model></world></sdf>"""

MJCF = """<mujoco model="arm"><option gravity="0 0 L{-9.81}"/><worldbody>
  <geom type="plane" pos="0 0 -5" size="9 9 1"/>
  <body name="upper" pos="L{ROUNDED} L{MEANT} L{0.5}">
    <inertial pos="L{0.1} 0 0" mass="M{2}" diaginertia="I{0.01} I{0.02} I{0.02}"/>
    <joint name="shoulder" type="hinge" axis="0 1 0"/>
    <body name="lower" pos="L{0.3} 0 0">
      <inertial pos="0 L{0.2} 0" mass="M{1}" diaginertia="I{0.01} I{0.02} I{0.02}"/>
      <joint name="slide" type="slide" axis="1 0 0" pos="0 0 L{ROUNDED}" range="L{-0.2} L{0.2}"/>
    </body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="slide"/></actuator></mujoco>"""

FILES = {
    "arm.urdf": URDF,
    "outside.urdf": URDF.replace("L{-0.2}", "L{1e-4}"),
    "pinned.urdf": URDF.replace("</robot>", f"{TIP}</robot>"),
    "near.sdf": SDF.replace("FRAME", "near"),
    "far.sdf": SDF.replace("FRAME", "far"),
    "arm.xml": MJCF,
}


def loaded(folder: Path, file: str, size: float) -> Mechanism:
    """Return a file's machine; lengths, masses and moments are multiplied by a size, its third and fifth power."""
    factors = {"L": size, "M": size**3, "I": size**5}

    def scaled(number: re.Match[str]) -> str:
        return repr(float(number[2]) * factors[number[1]])

    text = FILES[file].replace("ROUNDED", ROUNDED).replace("MEANT", MEANT)
    path = folder / file
    path.write_text(re.sub(r"([LMI])\{(.*?)\}", scaled, text))
    options = (
        ImportOptions(gravity=(0.0, 0.0, -9.81 * size))
        if file.endswith("urdf")
        else ImportOptions()
    )
    return tl.load(path, options=options)


def model_of(folder: Path, file: str, size: float) -> Model:
    """Return the model of a file's machine."""
    return Model(loaded(folder, file, size), evaluator=Interpreted())


def words_of(model: Model) -> list[str]:
    """Return notes of the reader and findings of `check`, without lengths, which have a unit."""
    inspection = tl.check(model)
    texts = [model.mechanism.description, *map(str, (*inspection.problems, *inspection.notes))]
    return [re.sub(r"(\S+ to )?\S+ (m|kg|N|kg m\^2)\b", "NUMBER", text) for text in texts]


def forces_of(model: Model, size: float) -> np.ndarray:
    """Return torque and force at a moving state, in the units of the file."""
    units = np.array([1.0, size])
    motion = (np.array(state) * units for state in ([0.3, 0.05], [0.7, -0.2], [-1.0, 0.4]))
    return model.actuators.inverse_dynamics(*motion).force / (size**3 * np.array([size**2, size]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("file", ["arm.urdf", "outside.urdf", "near.sdf", "far.sdf", "arm.xml"])
def test_readers_do_not_depend_on_the_size(tmp_path: Path, file: str, size: float) -> None:
    """Lengths below 1e-12 m were rounding, frames 1e-6 m apart were apart, and 1e-9 m outside a range was inside."""
    original, scaled = (model_of(tmp_path, file, factor) for factor in (1.0, size))
    assert words_of(scaled) == words_of(original)
    names = [model.mechanism.parameters.names for model in (original, scaled)]
    assert names[0] == names[1]
    assert forces_of(scaled, size) == pytest.approx(forces_of(original, size=1.0), rel=SAME)
    assert ("outside its range" in scaled.mechanism.description) == (file == "outside.urdf")
    assert ("distance between its frames" in scaled.mechanism.description) == (file == "far.sdf")


@pytest.mark.parametrize("size", [1.0, *SIZES])
@pytest.mark.parametrize("file", ["arm.urdf", "near.sdf", "arm.xml"])
def test_rounding_is_a_share_of_the_largest_length(tmp_path: Path, file: str, size: float) -> None:
    parameters = loaded(tmp_path, file, size).parameters.parameters
    lengths = [item.value for item in parameters if item.unit == "m" and item.group == "geometry"]
    small = [length for length in lengths if abs(length) < 1e-6 * size]
    assert small == pytest.approx([float(MEANT) * size])


@pytest.mark.parametrize("size", [1.0, *SIZES])
def test_frames_are_light_compared_with_the_heaviest_body(tmp_path: Path, size: float) -> None:
    """Bodies below 1e-6 kg stood for frames, and the platform of a machine of micrometres was one of them."""
    assert loaded(tmp_path, "pinned.urdf", size).platform.body == "lower"
