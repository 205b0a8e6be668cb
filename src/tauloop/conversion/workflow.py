"""A machine written in another format, with the solids by which others show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tauloop.datasets import Variable
from tauloop.errors import InputError, TauloopError
from tauloop.formats.format import Written, named
from tauloop.formats.library import FORMATS, load
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.model import Mechanism
from tauloop.options import Options, option
from tauloop.records import dataclass
from tauloop.result import Result, provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions(Options):
    """How a machine is written in another format.

    Attributes:
        to: format to write, by its name (yaml, mjcf, sdf, urdf, or what an installed package brings); that of the
            target's ending if empty.
        solids: write designed solids for what the description states none of, so that others show the machine; a
            machine file gets none, since whoever reads it designs them again.
        side: side file of a URDF that is read.
        reading: choices of whoever imports.

    Examples:
        >>> import tauloop as tl
        >>> tl.ConvertOptions(to="mjcf", solids=False).to
        'mjcf'
    """

    to: str = option("", metavar="FORMAT")
    solids: bool = option(True, flag="--solids/--no-solids")
    side: Path | None = option(None, flag="")
    reading: ImportOptions | None = option(None, flag="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion(Result):
    """The files that were written, and what is not as in the mechanism.

    Attributes:
        mechanism: what was written.
        format: name of the format.
        written: files and notes.
    """

    mechanism: Mechanism
    format: str
    written: Written

    def variables(self) -> Iterator[Variable]:
        """The machine's parameters."""
        return self.mechanism.parameters.variables()

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        files, notes = [str(file) for file in self.written.files], self.written.notes
        return self.plain_data("format", machine=self.mechanism.name, files=files, notes=notes)


def convert(
    source: Mechanism | str | Path,
    target: str | Path,
    options: ConvertOptions | None = None,
) -> Conversion:
    """Write a machine in another format.

    A machine file reads back to an equal machine, with all its parameters. The others hold numbers: their loops are
    cut, rods are bodies, and what they cannot say is listed.

    Args:
        source: the machine, or what `load` takes.
        target: file to write; ``arm.urdf`` gets ``arm.side.yaml`` and meshes in ``arm_meshes`` beside it.
        options: the format, and how the source is read.

    Raises:
        DescriptionError: the source is wrong, or the format cannot hold this machine, and why.
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
    to = options.to or next(iter(by_ending), "")
    if not to:
        what, remedy = f"{target.name} does not say the format", f"choose among {', '.join(FORMATS)}"
        raise InputError.of("to", what, remedy)
    format_ = named(to, FORMATS)
    mechanism = source if isinstance(source, Mechanism) else load(source, options.side, options=options.reading)
    made = provenance(packages=(), options={"to": format_.name}, inputs={"machine": mechanism.name})
    shown, notes = _with_solids(mechanism) if options.solids and format_.name != "yaml" else (mechanism, ())
    written = format_.write(shown, target)
    written = replace(written, notes=(*written.notes, *notes))
    return Conversion(evidence=(), provenance=made, mechanism=mechanism, format=format_.name, written=written)


def _with_solids(mechanism: Mechanism) -> tuple[Mechanism, tuple[str, ...]]:
    """The machine with solids for all of it; without more where it has no reference pose, and why."""
    from tauloop.model import Model
    from tauloop.solids import machine_solids

    try:
        return replace(mechanism, solids=machine_solids(Model(mechanism))), ()
    except TauloopError as error:
        return mechanism, (f"no solids were designed: {error.problems[0].what}",)
