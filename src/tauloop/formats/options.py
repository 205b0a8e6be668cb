"""How a description of another tool is read: what it does not say, and what is made of what it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tauloop.common.options import Options
from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RodRecognition:
    """How links with ball joints at both ends become rods, and two such links on a slide telescopic ones.

    See `tauloop.formats.imported.rod_recognition` and `telescopes`.

    Attributes:
        lock_spins: whether an axisymmetric link with axial inertia may become a slender rod, which
            does not spin.

    Examples:
        >>> import tauloop as tl
        >>> tl.RodRecognition(lock_spins=False).lock_spins
        False
    """

    lock_spins: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(Options):
    """Choices of whoever imports a description.

    Attributes:
        gravity: (3,) m/s^2 in the base frame, where the description does not say it.
        platform: name of the body that does the work; the last body of the file if empty.
        independent: velocity names of the independent coordinates; if empty those that the file
            names, else all those of a tree, and for a machine with loops none: assembly chooses.
        motors: names of the motors that the description states, or of joints that each have one; if
            empty, the description states which joints have motors (see
            `tauloop.formats.imported.motors`).
        rods: makes rods of links with ball joints at both ends, telescopic ones of legs on slides;
            None: every body stays what the file says.
        model: name of the model in a world (SDF) with several machines.
        keyframe: name of the MJCF keyframe that the machine starts at; the file's own pose if
            empty.
        origins: makes parameters of all six numbers of every origin in a URDF, zeros too, so that a
            calibration may estimate them; without it zeros are structure.
        xacro: arguments of a xacro, each as ``name:=value``.
        package_folders: folders of packages and models, or folders that these are in: ``$(find
            NAME)``, ``package://NAME`` and ``model://NAME`` are looked for there, and included
            files may be read from there.

    Examples:
        >>> import tauloop as tl
        >>> tl.ImportOptions(platform="plate", motors="motor_1,motor_2").motors
        ('motor_1', 'motor_2')
    """

    gravity: Sequence[float] | None = None
    platform: str = ""
    independent: tuple[str, ...] = ()
    motors: tuple[str, ...] = ()
    rods: RodRecognition | None = None
    model: str = ""
    keyframe: str = ""
    origins: bool = False
    xacro: tuple[str, ...] = ()
    package_folders: tuple[str | Path, ...] = ()
