"""Options for reading descriptions of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tauloop.common.options import NamedFields, Options
from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RodRecognition(NamedFields):
    """Recognition of rods among links with ball joints, and of telescopic rods on slides.

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
    """Options for the import of a description.

    Attributes:
        gravity: gravity (3,), m/s^2, in the base frame, for descriptions without gravity.
        platform_body: name of the moving platform; if empty, the last body of the file.
        independent: velocity names of the independent coordinates. If empty, those that the file
            gives. If the file gives none, all coordinates of a tree or, with loops, those that
            assembly chooses.
        motors: names of motors of the description, or of joints with one motor each; if empty, the
            description specifies which joints have motors (see `tauloop.formats.imported.motors`).
        rods: options for converting links with ball joints at both ends to rods, and legs on slides
            to telescopic rods; None keeps every body of the file.
        model_name: name of the model in an SDF world with several machines.
        keyframe: name of the MJCF keyframe at which the machine starts; if empty, the file's pose.
        origins: convert all six numbers of every origin in a URDF, including zeros, to parameters,
            so that a calibration can estimate them. By default zeros are part of the structure.
        xacro: arguments of a xacro file, each as ``name:=value``.
        package_folders: folders of packages and models, or their parent folders. They are searched
            for ``$(find NAME)``, ``package://NAME`` and ``model://NAME``. Included files may be
            read from them.

    Examples:
        >>> import tauloop as tl
        >>> tl.ImportOptions(platform_body="plate", motors="motor_1,motor_2").motors
        ('motor_1', 'motor_2')
    """

    gravity: Sequence[float] | None = None
    platform_body: str = ""
    independent: tuple[str, ...] = ()
    motors: tuple[str, ...] = ()
    rods: RodRecognition | None = None
    model_name: str = ""
    keyframe: str = ""
    origins: bool = False
    xacro: tuple[str, ...] = ()
    package_folders: tuple[str | Path, ...] = ()
