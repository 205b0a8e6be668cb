"""Conversion of a machine to another format, with solids for display in other tools."""

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
from tauloop.model.model import MachineSource, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions(Options):
    """Options of a conversion to another format.

    Attributes:
        format: name of the format to write (yaml, mjcf, sdf, urdf, klipper, marlin, reprap, or that
            of an installed plugin); inferred from the target's file extension if empty.
        solids: write generated solids for bodies and rods without solids, so that other tools show
            the machine. They are not written into machine files, because Tauloop generates them
            when it reads the file.
        side: side file of a URDF or SDF source.
        reading: import options for the source.

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
    """Result of a conversion: the written files and what they omit.

    Attributes:
        mechanism: the written machine.
        format: name of the format.
        written: written files, and notes on omissions.
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

    A machine file reads back as an equal machine with all its parameters. Other formats store
    numeric values without parameters: loops are cut, rods become bodies, and omissions are listed.
    The text is read back before it is written, and a machine whose text cannot be read is rejected.
    The status of the result is ``doubtful`` if forces at random states or the tool's pose differ
    after reading back.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        target: file to write; ``arm.urdf`` gets ``arm.urdf.side.yaml`` and meshes in ``arm_meshes``
            next to it.
        options: the format, and how the source is read.

    Returns:
        The conversion: written files, notes on omissions, and how well forces agree after reading
        the file back.

    Raises:
        DescriptionError: the source is invalid, the format cannot represent this machine, or the
            written text could not be read.
        InputError: there is no writable format with this name or file extension, or the file cannot
            be written.

    Examples:
        >>> import tauloop as tl
        >>> tl.convert("five_bar", "five_bar.xml").format
        'mjcf'
    """
    target, options = Path(target), options or ConvertOptions()
    by_extension = [
        candidate.name
        for candidate in FORMATS.values()
        if candidate.writes and target.suffix.lower() in candidate.endings
    ]
    format_name = options.format or next(iter(by_extension), "")
    if not format_name:
        writable = [name for name, candidate in FORMATS.items() if candidate.writes]
        raise InputError.of(
            "format",
            f"{target.name} does not determine the format",
            f"choose among {', '.join(writable)}",
        )
    format_ = named(format_name, FORMATS)
    if isinstance(machine, str | Path):
        mechanism = load(machine, options.side, options=options.reading)
    else:
        mechanism = mechanism_of(machine)
    origin = provenance(
        packages=(), options={"format": format_.name}, inputs={"machine": mechanism.name}
    )
    converted = mechanism
    notes: tuple[str, ...] = ()
    if format_.name != "yaml":
        converted, notes = _assembled(mechanism, options.solids)
    if mechanism.outputs and format_.name != "yaml":
        names = listing(output.name for output in mechanism.outputs)
        notes = (*notes, f"{format_.title} has no outputs; omitted: {names}")
    is_comparable = format_.reads and not format_.is_kinematic
    checks = _read_back(converted, format_, target) if is_comparable else ()
    written = format_.write(converted, target)
    unknown = [item.name for item in checks if item.value is None]
    written = replace(written, notes=(*written.notes, *notes, *unknown))
    return Conversion(
        diagnostics=(*checks, *omission_diagnostics(mechanism)),
        provenance=origin,
        mechanism=mechanism,
        format=format_.name,
        written=written,
    )


def _read_back(mechanism: Mechanism, format_: Format, target: Path) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the agreement of forces after writing a machine and reading it back.

    Raises:
        DescriptionError: the written files cannot be read.
    """
    from tauloop.authoring.read_back import read_back_diagnostics

    with temporary_folder() as folder:
        written = format_.write(mechanism, folder / target.name)
        try:
            reread = format_.read(written.files[0], written.side, None)
        except DescriptionError as error:
            what = (
                f"{format_.title} written for this machine cannot be read back: "
                f"{error.problems[0].what}"
            )
            remedy = "use another format; `--format yaml` preserves the whole machine"
            raise DescriptionError.of(
                error.problems[0].where, what, remedy, file=mechanism.file
            ) from None
        return read_back_diagnostics(mechanism, reread, written.names)


def _assembled(mechanism: Mechanism, solids: bool) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the machine at an assembled pose with generated solids, and notes on the changes.

    A machine without a regular reference pose is not changed. If the file's start values do not
    close the loops, they are replaced by those of the reference pose, and the joints that close
    loops there are marked as cut.
    """
    from tauloop.geometry import machine_solids

    try:
        model = Model(mechanism)
        mechanism = replace(mechanism, solids=machine_solids(model)) if solids else mechanism
    except TauloopError as error:
        note = f"no solids were generated: {error.problems[0].what}"
        return mechanism, (note,) if solids else ()
    topology, q = model.topology, model.assembly.q
    changed = _changed_starts(model)
    if not changed or model.assembly.substitute is not None:
        return mechanism, ()
    note = (
        "the written machine starts at an assembled pose, because the start values of the file do "
        f"not close the loops (changed: {', '.join(changed)})"
    )
    reference_by_joint = {
        tree.joint.name: tuple(q[list(tree.q)].tolist()) for tree in topology.tree
    }
    value_by_coordinate = dict(zip(topology.coordinate_names, q.tolist(), strict=True))
    joints = []
    for joint in mechanism.joints:
        if joint.name in reference_by_joint:
            joints.append(replace(joint, reference=reference_by_joint[joint.name]))
        else:
            joints.append(replace(joint, is_cut=True))
    rods = []
    for rod in mechanism.rods:
        if rod.telescope is not None:
            telescope = replace(rod.telescope, reference=value_by_coordinate[rod.name])
            rod = replace(rod, telescope=telescope)
        rods.append(rod)
    return replace(mechanism, joints=tuple(joints), rods=tuple(rods)), (note,)


def _changed_starts(model: Model) -> list[str]:
    """Return the coordinates and cut joints whose start values differ from the reference pose."""
    topology, q = model.topology, model.assembly.q
    cuts = [j for j in topology.cuts if j.kind in POSITIONED_KINDS and not j.is_cut]
    # `limited_cuts` only measures cut joints that have limits
    full_turn = (Freedom(lower=-np.pi, upper=np.pi),)
    limited = replace(topology, cuts=tuple(replace(joint, freedoms=full_turn) for joint in cuts))
    cut_positions = limited_cuts(model.mechanism, limited).positions(q[None])[0]
    cut_shifts = cut_positions - [sum(joint.reference) for joint in cuts]
    coordinate_shifts = (q - topology.reference) / model.assembly.loops.coordinate_scale
    # the sine of the half angle ignores whole revolutions
    shifts = np.concatenate([coordinate_shifts, np.sin(cut_shifts / 2)])
    names = [*topology.coordinate_names, *(joint.name for joint in cuts)]
    return [
        name
        for name, shift in zip(names, shifts.tolist(), strict=True)
        if abs(shift) > LOOP_CLOSURE_TOLERANCE
    ]
