"""Conversion of a machine to another format, with solids that other tools show."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import tabulated
from tauloop.common.errors import DescriptionError, InputError, TauloopError
from tauloop.common.files import temporary_folder
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, provenance
from tauloop.equations.assembly.freedoms.cut_freedoms import POSITIONED_KINDS, limited_cuts
from tauloop.formats.format import Format, Written, named
from tauloop.formats.library import FORMATS, load, mechanism_of
from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf.writer import LOOP_CLOSURE_TOLERANCE
from tauloop.mechanism.model import Freedom, Mechanism, omission_diagnostics
from tauloop.mechanism.suggestions import listing
from tauloop.model.model import MachineSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions(Options):
    """Options of a conversion to another format.

    Attributes:
        format: name of the format to write (yaml, mjcf, sdf, urdf, klipper, marlin, reprap, or one of an
            installed plugin); that of the target's ending if empty.
        solids: write designed solids for bodies and rods without any, so that other tools show the
            machine; a machine file gets none, because Tauloop designs them when it reads the file.
        side: side file of a URDF that is read.
        reading: import options.

    Examples:
        >>> import tauloop as tl
        >>> tl.ConvertOptions(format="mjcf", solids=False).format
        'mjcf'
    """

    format: str = option("", metavar="FORMAT")
    solids: bool = option(True, flag="--solids/--no-solids")
    side: Path | None = option(None, flag="")
    reading: ImportOptions | None = option(None, flag="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion(Result):
    """Written files, and differences from the mechanism.

    Attributes:
        mechanism: the written machine.
        format: name of the format.
        written: files and notes.
    """

    mechanism: Mechanism = field(metadata=json_keys(machine="name") | tabulated("parameters"))
    format: str
    written: Written = field(metadata=json_keys(files="files", notes="notes"))


@keywords(ConvertOptions)
def convert(
    machine: MachineSource,
    target: str | Path,
    options: ConvertOptions | None = None,
) -> Conversion:
    """Write a machine in another format.

    A machine file reads back as an equal machine with all its parameters. Other formats contain
    numbers: loops are cut, rods become bodies, and omissions are listed. The text is read back before
    it is written. A machine that would not be readable is rejected. The result is doubtful if forces
    at random states or the tool's pose differ.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        target: file to write; ``arm.urdf`` gets ``arm.urdf.side.yaml`` and meshes in ``arm_meshes``
            next to it.
        options: the format, and how the source is read.

    Returns:
        The conversion: written files, notes on omissions, and how well forces agree after reading
        the file back.

    Raises:
        DescriptionError: the source is wrong, or the format cannot hold this machine or would not
            be read again.
        InputError: no format of that name or ending is written, or the file cannot be written.

    Examples:
        >>> import tauloop as tl
        >>> tl.convert("five_bar", "five_bar.xml").format
        'mjcf'
    """
    target, options = Path(target), options or ConvertOptions()
    by_ending = [
        candidate.name
        for candidate in FORMATS.values()
        if candidate.writes and target.suffix.lower() in candidate.endings
    ]
    to = options.format or next(iter(by_ending), "")
    if not to:
        writable = [name for name, candidate in FORMATS.items() if candidate.writes]
        raise InputError.of(
            "format",
            f"{target.name} does not determine the format",
            f"choose among {', '.join(writable)}",
        )
    format_ = named(to, FORMATS)
    if isinstance(machine, str | Path):
        mechanism = load(machine, options.side, options=options.reading)
    else:
        mechanism = mechanism_of(machine)
    made = provenance(
        packages=(), options={"format": format_.name}, inputs={"machine": mechanism.name}
    )
    shown, notes = (mechanism, ()) if format_.name == "yaml" else _placed(mechanism, options.solids)
    if mechanism.outputs and format_.name != "yaml":
        names = listing(output.name for output in mechanism.outputs)
        notes = (*notes, f"{format_.title} has no outputs: {names} are left out")
    is_comparable = format_.reads and not format_.is_kinematic
    checks = _read_back(shown, format_, target) if is_comparable else ()
    written = format_.write(shown, target)
    unknown = [item.name for item in checks if item.value is None]
    written = replace(written, notes=(*written.notes, *notes, *unknown))
    return Conversion(
        diagnostics=(*checks, *omission_diagnostics(mechanism)),
        provenance=made,
        mechanism=mechanism,
        format=format_.name,
        written=written,
    )


def _read_back(mechanism: Mechanism, format_: Format, target: Path) -> tuple[Diagnostic, ...]:
    """Return how well forces agree after writing a machine and reading it again.

    Raises:
        DescriptionError: what was written cannot be read.
    """
    from tauloop.authoring.read_back import read_back_diagnostics

    with temporary_folder() as folder:
        written = format_.write(mechanism, folder / target.name)
        try:
            back = format_.read(written.files[0], written.side, None)
        except DescriptionError as error:
            what = (
                f"{format_.title} written for this machine cannot be read back: "
                f"{error.problems[0].what}"
            )
            remedy = "write it in another format; `--format yaml` writes all of a machine"
            raise DescriptionError.of(
                error.problems[0].where, what, remedy, file=mechanism.file
            ) from None
        return read_back_diagnostics(mechanism, back, written.names)


def _placed(mechanism: Mechanism, solids: bool) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the machine with closed loops, cut joints and designed solids, and notes on changes.

    A machine without a regular reference pose stays as it is.
    """
    from tauloop.geometry import machine_solids
    from tauloop.model import Model

    try:
        model = Model(mechanism)
        mechanism = replace(mechanism, solids=machine_solids(model)) if solids else mechanism
    except TauloopError as error:
        note = f"no solids were designed: {error.problems[0].what}"
        return mechanism, (note,) if solids else ()
    topology, q = model.topology, model.assembly.q
    at = {tree.joint.name: tuple(q[list(tree.q)].tolist()) for tree in topology.tree}
    ends = dict(zip(topology.coordinate_names, q.tolist(), strict=True))
    cuts = [j for j in topology.cuts if j.kind in POSITIONED_KINDS and not j.is_cut]
    shut = replace(
        topology,
        cuts=tuple(replace(j, freedoms=(Freedom(lower=-np.pi, upper=np.pi),)) for j in cuts),
    )
    shifts = limited_cuts(mechanism, shut).positions(q[None])[0] - [sum(j.reference) for j in cuts]
    moves = (q - topology.reference) / model.assembly.loops.coordinate_scale
    shifts = np.concatenate([moves, np.sin(shifts / 2)])
    names = [*ends, *(joint.name for joint in cuts)]
    moved = [
        name
        for name, shift in zip(names, shifts.tolist(), strict=True)
        if abs(shift) > LOOP_CLOSURE_TOLERANCE
    ]
    joints = [
        replace(j, reference=at[j.name]) if j.name in at else replace(j, is_cut=True)
        for j in mechanism.joints
    ]
    rods = (
        replace(r, telescope=r.telescope and replace(r.telescope, reference=ends[r.name]))
        for r in mechanism.rods
    )
    note = f"starts where its loops close: the start values of the file leave them open ({', '.join(moved)})"
    changed = replace(mechanism, joints=tuple(joints), rods=tuple(rods)), (note,)
    return changed if moved and model.assembly.substitute is None else (mechanism, ())
