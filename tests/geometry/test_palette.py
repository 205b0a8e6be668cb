"""Colours that the colour-blind, and a printer in grey, tell apart: distances in CIELAB, after simulated vision."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tauloop.kinematics.workspaces.map import Reason
from tauloop.mechanism.solids.solid import ROLE_COLORS
from tauloop.viewer.scene import cloud, forces, marks

#: Two colours are told apart at a glance from such a distance on (2.3 is just noticeable), and two
#: greys from this.
APART, LIGHTER = 18.0, 10.0
#: From linear RGB to linear RGB as dichromats see it (Machado, Oliveira and Fernandes 2009,
#: severity 1).
VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
#: From linear sRGB to XYZ over that of white (D65).
XYZ = np.array(
    [[0.412456, 0.357576, 0.180438], [0.212673, 0.715152, 0.072175], [0.019334, 0.119192, 0.950304]]
)
#: What must be told apart. Rails, joints and cables are known by their shape.
PALETTES: Mapping[str, Mapping[str, str]] = {
    "parts": {
        role: ROLE_COLORS[role] for role in ("base", "link", "rod", "motor", "platform", "tool")
    },
    "reasons": {Reason(kind).name: colour for kind, colour in cloud.REASON_COLORS.items()},
    "forces": {
        "compression": forces.COMPRESSION_COLOR,
        "tension": forces.TENSION_COLOR,
        "zero": forces.ZERO_COLOR,
    },
    "paths": {
        "within": marks.WITHIN_COLOR,
        "beyond": marks.BEYOND_COLOR,
        "singular": marks.SINGULAR_COLOR,
    },
}


def lab(colour: str, vision: object) -> np.ndarray:
    """CIELAB (3,) of an sRGB colour seen through a matrix."""
    value = np.array(to_rgb(colour))
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    share = XYZ @ np.clip(np.array(vision) @ linear, 0.0, 1.0) / XYZ.sum(axis=1)
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), share * 841 / 108 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("vision", VISION)
def test_colours_are_told_apart_with_any_vision(palette: str, vision: str) -> None:
    seen = {name: lab(colour, VISION[vision]) for name, colour in PALETTES[palette].items()}
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > APART, (a, b)


@pytest.mark.parametrize("palette", PALETTES)
def test_colours_are_told_apart_in_grey(palette: str) -> None:
    lightness = {
        name: lab(colour, VISION["usual"])[0] for name, colour in PALETTES[palette].items()
    }
    for a, b in itertools.combinations(lightness, 2):
        assert abs(lightness[a] - lightness[b]) > LIGHTER, (a, b)


def test_lightness_is_that_of_known_colours() -> None:
    """White, black, and the grey of half the light."""
    assert [
        round(lab(colour, np.eye(3))[0], 1) for colour in ("#ffffff", "#000000", "#bcbcbc")
    ] == [100.0, 0.0, 76.2]
