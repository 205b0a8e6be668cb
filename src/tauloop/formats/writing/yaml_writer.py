"""Conversion of a `Mechanism` to a machine file that reads back to the same machine.

All independent parameters theta are under ``parameters``, in their order and with their full names.
The elements refer to them by expressions. Legs are expanded: ``leg1.slide`` is a name like any
other.

A `Mechanism` contains no patterns, comments, notes, names of derived parameters or named frames.
They are lost unless the text of the original file is preserved (see `value_edits`). A start
orientation is written as rotations, so the quaternion that is read is equal up to rounding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tauloop.common.errors import DescriptionError, Problem, Problems
from tauloop.common.files import write_text
from tauloop.formats.writing.element_writer import ElementWriter
from tauloop.formats.writing.expression_writer import (
    ExpressionWriter,
    keys_of,
    literal,
    number,
    parameter_literal,
)
from tauloop.formats.writing.inertia_writer import along_the_rod, centered
from tauloop.formats.writing.output_writer import OutputWriter
from tauloop.formats.writing.value_edits import TextNotKept, text_with_values_of
from tauloop.formats.xml.meshes import MeshCopies
from tauloop.mechanism.description import units
from tauloop.mechanism.description.grammar import MACHINE_FORMAT, MOTIONS, TENSION
from tauloop.mechanism.description.placements import constant_vector, rotated
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.schema import EDITOR_LINE
from tauloop.mechanism.description.units import Dimension, UnitError
from tauloop.mechanism.expression import ZERO, Expression, Parameter
from tauloop.mechanism.inertia import is_possible
from tauloop.mechanism.links.rigid_tree import constant_angles
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    PLATFORM_JOINT,
    ZERO_VECTOR,
    Body,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
)
from tauloop.mechanism.poses import quaternion_rotation, rotation_matrix
from tauloop.mechanism.solids.solid import Solid

#: Components of a unit vector that differ from 0 or 1 by less than this count as 0 or 1.
_AXIS_ROUNDING = 1e-12
#: Line with gravity that refers to a parameter. It gets a comment, because this is unusual.
_GRAVITY_LINE = re.compile(r"^(gravity: \[.*'(gravity\[\d\])'.*\])$", re.MULTILINE)
_MOMENT_KEYS = ("xx", "xy", "yy", "xz", "yz", "zz")


def dumps(mechanism: Mechanism, meshes: MeshCopies | None = None) -> str:
    """Return the text of a machine file; see `tauloop.formats.dumps`.

    Args:
        mechanism: any mechanism.
        meshes: receives triangles that have no file; the text contains the names of the new files.

    Raises:
        DescriptionError: the file would be rejected when it is read.
    """
    text = EDITOR_LINE + yaml.dump(
        _YamlWriter(mechanism, meshes or MeshCopies("meshes")).machine(),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        default_flow_style=None,
    )
    text = _GRAVITY_LINE.sub(r"\1  # \2 is under parameters", text, count=1)
    try:
        read_machine(text, f"{mechanism.name}.yaml")
    except DescriptionError as error:
        reason = Problem(
            where=mechanism.name,
            what="the machine cannot be written as a valid machine file, for the reasons below",
            remedy="correct the machine first",
        )
        raise DescriptionError((reason, *error.problems)) from error
    return text


def write_yaml(mechanism: Mechanism, path: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write a machine file, and write triangles that have no file into the folder ``NAME_meshes``.

    If the mechanism was read from a machine file, the text of that file is written with the changed
    values; comments, order and legs are preserved. Otherwise the text is written from the mechanism
    (see `dumps`).

    Returns:
        Paths of the meshes; notes on differences from the file that was read.

    Raises:
        DescriptionError: as for `dumps`.
        InputError: the file cannot be written.
    """
    path = Path(path)
    try:
        text, notes = text_with_values_of(mechanism, path.parent)
    except TextNotKept as error:
        meshes = MeshCopies(f"{path.stem}_meshes")
        text = dumps(mechanism, meshes)
        written = meshes.write(path.parent)
        notes = error.notes
    else:
        written = []
    write_text(path, text)
    return tuple(written), notes


class _Block(dict[str, Any]):
    """A mapping that is written with one key per line."""


class _Braces(dict[str, Any]):
    """A mapping that is written in braces."""


class _Prose(str):
    """A text that is written on several lines."""


class _Dumper(yaml.SafeDumper):
    """Dumper that writes strings without quotes if possible, because scalars are read as text."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 (PyYAML's own name and form)


_Dumper.add_multi_representer(
    str, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", str(data))
)
_Dumper.add_representer(
    _Block,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=False
    ),
)
_Dumper.add_representer(
    _Braces,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=True
    ),
)
_Dumper.add_representer(
    _Prose,
    lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", str(data), style="|"),
)


class _YamlWriter:
    """Converter of a mechanism to plain data."""

    def __init__(self, mechanism: Mechanism, meshes: MeshCopies) -> None:
        self._mechanism = mechanism
        self._meshes = meshes
        self._literals: dict[str, str] = {}
        dimensions: dict[str, Dimension] = {}
        problems = Problems()
        for parameter in mechanism.parameters:
            try:
                self._literals[parameter.name], dimensions[parameter.name] = parameter_literal(
                    parameter
                )
            except UnitError as error:
                problems.add(parameter.name, error.what, error.remedy)
        DescriptionError.raise_if_any(problems)
        self._expressions = ExpressionWriter(dimensions)
        self._outputs = OutputWriter(mechanism, self._expressions)
        self._write = ElementWriter(mechanism=mechanism, text=self._expressions.text)
        self._text = self._expressions.text

    def machine(self) -> _Block:
        """Return the whole file."""
        mechanism = self._mechanism
        sections: dict[str, dict[str, Any]] = {
            "bodies": {body.name: self._body(body) for body in mechanism.bodies},
            "joints": {
                joint.name: self._joint(joint)
                for joint in mechanism.joints
                if not self._is_platform_motion(joint)
            },
            "rods": {rod.name: self._rod(rod) for rod in mechanism.rods},
            "couplings": {
                coupling.name: self._write.coupling(coupling) for coupling in mechanism.couplings
            },
            "actuators": {
                actuator.name: self._write.actuator(actuator) | self._write.drive(actuator)
                for actuator in mechanism.actuators
            },
            "losses": {loss.name: self._write.loss(loss) for loss in mechanism.losses},
            "visual": {
                f"solid{i + 1}": self._visual(solid) for i, solid in enumerate(mechanism.solids)
            },
            "outputs": {output.name: self._outputs.output(output) for output in mechanism.outputs},
        }
        frames = {
            name: self._placement(placement) for name, placement in self._outputs.frames.items()
        }
        status, source = self._provenance()
        gravity = self._write.vector(mechanism.gravity, units.ACCELERATION)
        platform = self._platform()
        parameters = {
            parameter.name: self._parameter(parameter, status, source)
            for parameter in mechanism.parameters
        } | self._expressions.derived
        file = _Block({"format": MACHINE_FORMAT, "name": mechanism.name})
        if mechanism.description:
            file["description"] = (
                _Prose(mechanism.description)
                if "\n" in mechanism.description
                else mechanism.description
            )
        for key in ("omitted_forces", "unknown_elements", "unstated_motors"):
            if texts := getattr(mechanism, key):
                file[key] = list(texts)
        file["provenance"] = {"status": status, "source": source}
        file["gravity"] = gravity
        all_sections: dict[str, dict[str, Any]] = {
            "parameters": parameters,
            "frames": frames,
            **sections,
        }
        for name, elements in all_sections.items():
            if elements:
                file[name] = _Block(elements)
        if mechanism.has_elastic_data:
            from tauloop.formats.writing.elastic_writer import machine_sections

            elastic = machine_sections(mechanism, self._text)
            file |= {name: _Block(section) for name, section in elastic.items() if section}
        file["platform"] = platform
        return file

    # Values

    def _provenance(self) -> tuple[str, str]:
        """Return the most frequent status and source.

        An empty source cannot be stated for a single value, so it has priority as the default.
        """
        pairs = Counter((p.status, p.source) for p in self._mechanism.parameters)
        if not pairs:
            return "chosen", ""
        pairs_without_source = [candidate for candidate in pairs if not candidate[1]]
        return max(pairs_without_source or pairs, key=lambda candidate: pairs[candidate])

    def _parameter(self, parameter: Parameter, status: str, source: str) -> str | dict[str, Any]:
        """Return a parameter; status and source are omitted if they equal the file's defaults."""
        written: dict[str, Any] = {"value": self._literals[parameter.name]}
        if parameter.status != status:
            written["status"] = parameter.status
        if parameter.source != source:
            written["source"] = parameter.source
        if np.isfinite([parameter.lower, parameter.upper]).any():
            dimension = self._expressions.dimensions[parameter.name]
            written["bounds"] = [
                literal(parameter.lower, dimension),
                literal(parameter.upper, dimension),
            ]
        return written if len(written) > 1 else str(written["value"])

    def _stated_values(self, **values: tuple[Expression | None, Dimension]) -> dict[str, Any]:
        """Return the values that are not None."""
        return {
            key: self._text(x, dimension) for key, (x, dimension) in values.items() if x is not None
        }

    # Frames

    def _placement(self, placement: Placement) -> str | dict[str, Any]:
        """Return the name of a body, or the keys of a frame on the body."""
        pose = self._write.pose(placement)
        return _Braces({"on": placement.body} | pose) if pose else placement.body

    # Inertia

    def _body(self, body: Body) -> str | dict[str, Any]:
        """Return the keys of a body, or "massless"."""
        if not body.beams:
            return "massless" if body.inertia is None else self._inertia(body.inertia)
        from tauloop.formats.writing.elastic_writer import (
            body_beams,
            body_follows_from_beams,
            contradicts_beams,
        )

        written: dict[str, Any] = {}
        if body.inertia is not None and not body_follows_from_beams(body):
            written = self._inertia(body.inertia)
            beams = [item.beam for item in body.beams]
            if contradicts_beams(self._mechanism, body.inertia.mass, beams):
                written["unchecked"] = "yes"
        if body.is_distributed:
            written["distributed"] = "yes"
        return written | {"beams": body_beams(body, self._text)}

    def _inertia(self, inertia: Inertia) -> dict[str, Any]:
        """Return the keys of an inertia, about the mass center if its expressions permit."""
        written: dict[str, Any] = {"mass": self._text(inertia.mass, units.MASS)}
        central = centered(inertia)
        moments: Sequence[Expression] = inertia.second_moment
        if central is not None:
            center, moments = central
            if center != ZERO_VECTOR:
                written["center"] = self._write.vector(center, units.LENGTH)
        else:
            written["first_moment"] = self._write.vector(inertia.first_moment, units.FIRST_MOMENT)
        table = {
            name: self._text(moment, units.INERTIA)
            for name, moment in zip(_MOMENT_KEYS, moments, strict=True)
            if moment != ZERO
        }
        if central is None:
            written |= {"inertia": table or {"xx": "0"}, "about": "origin"}
        elif table:
            written["inertia"] = table
        possible = is_possible([self._mechanism.value(x) for x in inertia.parameters])
        return written if possible else written | {"unchecked": "yes"}

    def _slender(self, part: SlenderPart) -> dict[str, Any]:
        """Return the keys of a slender link."""
        m, s, transverse = along_the_rod(part)
        written = self._stated_values(
            mass=(m, units.MASS), center=(s, units.LENGTH), inertia=(transverse, units.INERTIA)
        )
        value = self._mechanism.value
        if value(m) > 0.0 and value(transverse) >= 0.0:
            return written
        return written | {"unchecked": "yes"}

    # Elements

    def _joint(self, joint: Joint) -> dict[str, Any]:
        """Return the keys of a joint."""
        kind = JOINT_KINDS[joint.kind]
        written: dict[str, Any] = {"type": joint.kind}
        if joint.axes:
            written |= (
                {"axis": joint.axes[0]} if len(joint.axes) == 1 else {"axes": list(joint.axes)}
            )
        written |= {"parent": self._placement(joint.parent), "child": self._placement(joint.child)}
        reference = _reference(joint.kind, joint.reference)
        if reference:
            written["reference"] = reference
        if kind.velocities == ("",):
            written |= (
                self._write.freedom(joint.freedoms[0], kind.angular[0]) if joint.freedoms else {}
            )
        elif freedoms := self._write.freedoms(kind.velocities, kind.angular, joint.freedoms):
            written["freedoms"] = freedoms
        if joint.compliance is not None:
            from tauloop.formats.writing.elastic_writer import compliance_keys

            written |= compliance_keys(joint.compliance, self._text)
        return written | ({"cut": "yes"} if joint.is_cut else {})

    def _rod(self, rod: Rod) -> dict[str, Any]:
        """Return the keys of a rod."""
        start, axis = self._first_axis(rod)
        written: dict[str, Any] = {"from": self._placement(start), "to": self._placement(rod.end)}
        if rod.length is not None:
            written["length"] = self._text(rod.length, units.LENGTH)
        if rod.telescope is not None:
            reference = {"reference": literal(rod.telescope.reference, units.LENGTH)}
            written["telescopic"] = reference | self._write.freedom(
                rod.telescope.freedom, is_angular=False
            )
        links = {"link" if rod.telescope is None else "lower": rod.lower, "upper": rod.upper}
        present_links = {key: link for key, link in links.items() if link is not None}
        if rod.is_full:
            written["model"] = "full"
        else:
            written["model"] = "slender" if present_links else "massless"
        for key, link in present_links.items():
            written[key] = (
                self._slender(link) if isinstance(link, SlenderPart) else self._inertia(link)
            )
        if rod.is_full:
            written |= {"first_axis": axis, "spin": rod.spin}
        if rod.tension is not None:
            written["tension"] = keys_of(TENSION, rod.tension, False, self._text)
        if rod.lower_beam or rod.upper_beam or any(rod.contact):
            self._add_elastic(written, rod)
        if rod.drum is not None:
            winds = "clockwise" if rod.drum.is_clockwise else "counterclockwise"
            radius = self._text(rod.drum.radius, units.LENGTH)
            written["drum"] = {"radius": radius, "winds": winds}
        return written

    def _add_elastic(self, written: dict[str, Any], rod: Rod) -> None:
        """Add the sections of a rod, and omit inertias that follow from them."""
        from tauloop.formats.writing.elastic_writer import (
            beam_keys,
            contact_keys,
            contradicts_beams,
            follows_from_section,
            part_keys,
        )

        is_fixed = rod.telescope is None
        parts = (("link" if is_fixed else "lower", rod.lower_beam), ("upper", rod.upper_beam))
        for key, beam in parts:
            if beam is None:
                continue
            part = rod.upper if key == "upper" else rod.lower
            if follows_from_section(rod, is_upper=key == "upper"):
                written.pop(key)
            elif part is not None and contradicts_beams(self._mechanism, part.mass, (beam,)):
                written[key]["unchecked"] = "yes"
            if is_fixed:
                written |= beam_keys(beam, self._text)
            else:
                written[key] = written.get(key, {}) | part_keys(beam, self._text)
        if contact := contact_keys(rod, self._text):
            written["contact"] = contact

    def _first_axis(self, rod: Rod) -> tuple[Placement, list[str]]:
        """Return the frame of a rod's start A, and the first axis as numbers in this frame.

        The frame is the start frame of the rod if possible; otherwise it has the axes of the body.
        """
        if rod.first_axis is None:
            return rod.start, []
        turns = tuple((turn.axis, self._mechanism.value(turn.angle)) for turn in rod.start.turns)
        in_body = np.array([self._mechanism.value(component) for component in rod.first_axis])
        in_frame = rotation_matrix(turns).T @ in_body
        in_frame[np.abs(in_frame) < _AXIS_ROUNDING] = 0.0
        if np.max(np.abs(in_frame)) > 1.0 - _AXIS_ROUNDING:
            in_frame = np.round(in_frame)
        x, y, z = (float(component) for component in in_frame)
        if rotated(rod.start.turns, constant_vector((x, y, z))) == rod.first_axis:
            return rod.start, [number(component) for component in (x, y, z)]
        start = Placement(body=rod.start.body, position=rod.start.position)
        return start, [self._text(component, units.ONE) for component in rod.first_axis]

    # Platform

    def _is_platform_motion(self, joint: Joint) -> bool:
        """Return whether a joint is the joint that the key `motion` of the platform adds."""
        return (
            joint.name == PLATFORM_JOINT
            and joint is self._mechanism.joints[0]
            and joint.kind in MOTIONS
            and not joint.is_cut
            and joint.parent == Placement(body=BASE)
            and joint.child == Placement(body=self._mechanism.platform.body)
            and all(
                set(self._write.freedom(freedom, False)) <= {"limits"} for freedom in joint.freedoms
            )
        )

    def _platform(self) -> dict[str, Any]:
        """Return the keys of the platform and of its motion."""
        platform = self._mechanism.platform
        joint = next(
            (joint for joint in self._mechanism.joints if self._is_platform_motion(joint)), None
        )
        written: dict[str, Any] = {"body": platform.body}
        if joint is not None:
            written["motion"] = joint.kind
        tool = self._write.pose(platform.tool)
        if tool:
            written["tool"] = _Braces(tool)
        if platform.payload:
            written["payload"] = f"{platform.payload!r} kg"
        independent = list(platform.independent)
        if joint is None:
            return written | {"independent": independent}
        written["independent"] = [name.removeprefix(f"{PLATFORM_JOINT}.") for name in independent]
        reference = _reference(joint.kind, joint.reference)
        if reference:
            written["reference"] = reference
        kind = JOINT_KINDS[joint.kind]
        freedoms = self._write.freedoms(kind.velocities, kind.angular, joint.freedoms)
        limits = {name: content["limits"] for name, content in freedoms.items()}
        return written | ({"limits": limits} if limits else {})

    def _visual(self, solid: Solid) -> dict[str, Any]:
        """Return the keys of a solid."""
        written: dict[str, Any] = {"on": solid.body}
        if any(solid.position):
            written["at"] = [literal(x, units.LENGTH) for x in solid.position]
        if solid.turns:
            written["turn"] = [{axis: literal(angle, units.ANGLE)} for axis, angle in solid.turns]
        if solid.mesh is not None:
            file = (
                str(solid.mesh) if isinstance(solid.mesh, Path) else self._meshes.path(solid.mesh)
            )
            written |= {"mesh": file, "scale": [number(factor) for factor in solid.size]}
        else:
            size = [literal(x, units.LENGTH) for x in solid.size]
            whole = {"box": size, "sphere": size[0]}
            written[solid.shape] = whole.get(solid.shape) or dict(
                zip(("radius", "length"), size, strict=True)
            )
        return written | ({"color": solid.color} if solid.color else {})


def _reference(kind: str, values: Sequence[float]) -> str | dict[str, Any] | None:
    """Return the start value of a joint; None if `reference` can be omitted."""
    names = JOINT_KINDS[kind].coordinates
    angular = JOINT_KINDS[kind].angular
    if not values or tuple(values) == JOINT_KINDS[kind].neutral:
        return None
    if names == ("",):
        return literal(values[0], units.ANGLE if angular[0] else units.LENGTH)
    named: Mapping[str, float] = dict(zip(names, values, strict=True))
    written: dict[str, Any] = {}
    if "z" in named and any(named[axis] for axis in "xyz"):
        written["at"] = [literal(named[axis], units.LENGTH) for axis in "xyz"]
    if "qw" not in named:
        for name, is_angular in zip(names, angular, strict=True):
            if "z" not in named or is_angular:
                dimension = units.ANGLE if is_angular else units.LENGTH
                written[name] = literal(named[name], dimension)
    else:
        quaternion = np.array([named[name] for name in ("qw", "qx", "qy", "qz")])
        angles = constant_angles(quaternion_rotation(quaternion))
        if angles:
            rotations = [{axis: literal(angle, units.ANGLE)} for axis, angle in angles.items()]
            written["turn"] = rotations
    return written
