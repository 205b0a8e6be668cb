"""Reader of machine files, from text to a frozen `Mechanism`. All problems are reported at once.

The machine as a whole is checked last: every body must be connected to the base, and no degree of
freedom may have two motors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.elastic_grammar import ROD_BEAM_KEYS
from tauloop.mechanism.description.grammar import MACHINE
from tauloop.mechanism.description.placements import Placements
from tauloop.mechanism.description.sections.bodies import read_body, read_rod
from tauloop.mechanism.description.sections.elements import (
    Coordinates,
    platform_joint,
    read_actuator,
    read_coupling,
    read_loss,
    read_platform,
)
from tauloop.mechanism.description.sections.joints import read_joint
from tauloop.mechanism.description.sections.outputs import OutputReader
from tauloop.mechanism.description.structure import SECTIONS, Names, Scope, document, scopes
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import Node, parse_nodes
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.model import (
    BASE,
    PLATFORM_JOINT,
    Actuator,
    Freedom,
    Joint,
    Mechanism,
    Placement,
    Rod,
)
from tauloop.mechanism.outputs import Output
from tauloop.mechanism.solids.visual import read_visual

if TYPE_CHECKING:
    from tauloop.mechanism.description.sections.elastic import ElasticReader
    from tauloop.mechanism.elastic.structures import ReducedStructure

Element = TypeVar("Element")


def read_machine(text: str, file: str, folder: Path | None = None) -> Mechanism:
    """Return the mechanism that a machine file describes.

    Args:
        text: text of the file (docs/machine-file.md).
        file: name of the file, for messages and provenance.
        folder: folder of the files to which the file refers; None for a text without a file.

    Raises:
        DescriptionError: every problem of the file, each with line, key path and remedy.
    """
    return read_with_nodes(text, file, folder)[0]


def read_with_nodes(
    text: str, file: str, folder: Path | None = None
) -> tuple[Mechanism, dict[str, Node], Cursor]:
    """Return a mechanism, the nodes of its independent parameters by name, and the root cursor.

    Parameters of other files, such as those of a drive line, have no node.

    Raises:
        DescriptionError: see `read_machine`.
    """
    root = document(parse_nodes(text, file), file, MACHINE, folder)
    all_scopes = scopes(root)
    values = _parameters(root, all_scopes)
    mechanism = _read(root, all_scopes, values)
    root.collector.raise_any()
    if mechanism is None:
        raise AssertionError("reading failed without a reported problem")
    return mechanism, values.nodes, root


def _read(root: Cursor, all_scopes: list[Scope], values: ValueReader) -> Mechanism | None:
    """Return the mechanism; None if there are problems.

    The sections are read in the order in which they depend on each other.
    """
    names, cursors = _names_and_cursors(all_scopes)
    placements = Placements(values, names)
    placements.define(cursors["frame"])
    gravity = values.vector(root.get("gravity"))
    platform_cursor = root.get("platform")

    elastic = _elastic_reader(root, cursors, values)
    bodies = {
        name: None if cursor.has("beams") else read_body(name, cursor, values)
        for name, cursor in cursors["body"].items()
    }
    joints = {
        name: read_joint(name, cursor, values, placements)
        for name, cursor in cursors["joint"].items()
    }
    rods = {
        name: read_rod(name, cursor, values, placements, elastic)
        for name, cursor in cursors["rod"].items()
    }
    points: dict[str, dict[str, Placement]] = {}
    if elastic is not None:
        for name, joint in joints.items():
            if joint is not None:
                compliance = elastic.compliance(cursors["joint"][name], joint)
                joints[name] = replace(joint, compliance=compliance)
        points = _points(placements, joints, rods)
        for name, cursor in cursors["body"].items():
            if cursor.has("beams"):
                bodies[name] = read_body(name, cursor, values, elastic, points)

    coordinates = _coordinates(cursors, platform_cursor, names)
    actuators = {
        name: read_actuator(name, cursor, values, coordinates)
        for name, cursor in cursors["actuator"].items()
    }
    losses = {
        name: read_loss(name, cursor, values, coordinates, actuators)
        for name, cursor in cursors["loss"].items()
    }
    freedoms = _freedoms(joints, rods, coordinates)
    couplings = {
        name: read_coupling(name, cursor, values, coordinates, freedoms)
        for name, cursor in cursors["coupling"].items()
    }
    motion = platform_joint(platform_cursor, values, names) if platform_cursor is not None else None
    platform = (
        read_platform(platform_cursor, placements, values, names, coordinates)
        if platform_cursor is not None
        else None
    )

    all_joints = {PLATFORM_JOINT: motion, **joints} if motion is not None else joints
    check_connection(cursors["body"], all_joints, platform_cursor)
    check_actuators(cursors["actuator"], actuators)
    unstated = _unstated_motors(root, coordinates, has_actuators=bool(actuators))
    solids = {
        name: read_visual(cursor, values, placements, cursors["rod"])
        for name, cursor in cursors["visual"].items()
    }
    tool = platform.tool if platform is not None else None
    outputs: dict[str, Output | None] = {}
    if cursors["output"]:
        output_reader = OutputReader(
            values, placements, coordinates, all_joints, rods, actuators, tool
        )
        outputs = output_reader.read(cursors["output"])
    damping = elastic.damping(root.get("damping")) if elastic is not None else None
    structures: dict[str, ReducedStructure | None] = {}
    if elastic is not None and cursors["structure"]:
        structures = _structures(cursors["structure"], values, names, points)
    elements = (bodies, all_joints, rods, couplings, actuators, losses, solids, outputs, structures)
    all_elements = (gravity, platform, *(element for kind in elements for element in kind.values()))
    if gravity is None or platform is None or None in all_elements:
        return None
    return Mechanism(
        name=root.word("name") or "",
        description=(root.word("description") or "").strip(),
        parameters=values.table(),
        gravity=gravity,
        bodies=_valid(bodies.values()),
        joints=_valid(all_joints.values()),
        rods=_valid(rods.values()),
        couplings=_valid(couplings.values()),
        actuators=_valid(actuators.values()),
        losses=_valid(losses.values()),
        platform=platform,
        solids=_valid(solids.values()),
        outputs=_valid(outputs.values()),
        omitted_forces=texts(root, "omitted_forces"),
        unknown_elements=texts(root, "unknown_elements"),
        unstated_motors=unstated,
        materials=_valid(elastic.used.values()) if elastic is not None else (),
        damping=damping,
        structures=_valid(structures.values()),
        file=root.collector.file,
    )


def _coordinates(
    cursors: Mapping[str, Mapping[str, Cursor]], platform_cursor: Cursor | None, names: Names
) -> Coordinates:
    """Return the coordinates of joints, telescopic rods and the platform's motion."""
    coordinates = Coordinates()
    for name, cursor in cursors["joint"].items():
        coordinates.add_joint(name, cursor.word("type") or "")
    for name, cursor in cursors["rod"].items():
        if cursor.has("telescopic"):
            coordinates.add_rod(name)
    if platform_cursor is not None and platform_cursor.has("motion"):
        if names.kind(PLATFORM_JOINT) in ("joint", "rod", "coupling", "actuator"):
            platform_cursor.problem(
                f"`motion` adds a joint named {PLATFORM_JOINT}, but a "
                f"{names.kind(PLATFORM_JOINT)} has this name",
                f"rename the {names.kind(PLATFORM_JOINT)}",
                "motion",
            )
        coordinates.add_joint(PLATFORM_JOINT, platform_cursor.word("motion") or "")
    return coordinates


def _structures(
    cursors: Mapping[str, Cursor],
    values: ValueReader,
    names: Names,
    points: Mapping[str, Mapping[str, Placement]],
) -> dict[str, ReducedStructure | None]:
    """Return the reduced structures by name; None for structures with problems."""
    from tauloop.mechanism.description.sections.structures import read_structure

    return {
        name: read_structure(name, cursor, values, names, points)
        for name, cursor in cursors.items()
    }


def _valid(elements: Iterable[Element | None]) -> tuple[Element, ...]:
    """Return the valid elements."""
    return tuple(element for element in elements if element is not None)


#: Keys of elastic data in a machine, body, joint or rod.
_ELASTIC_KEYS = frozenset(
    ("materials", "structures", "damping", "beams", "stiffness", "compliance", "contact")
)


def _elastic_reader(
    root: Cursor, cursors: Mapping[str, Mapping[str, Cursor]], values: ValueReader
) -> ElasticReader | None:
    """Return the reader of elastic data; None if the file has none.

    Its module is imported only when needed, because few machines have elastic data.
    """
    candidates = [root]
    for kind in ("body", "joint", "rod"):
        candidates += cursors[kind].values()
    for rod in cursors["rod"].values():
        links = (rod.get(key) for key in ("link", "lower", "upper"))
        candidates += [link for link in links if link is not None]
    if not any(_is_elastic(candidate) for candidate in candidates):
        return None
    from tauloop.mechanism.description.sections.elastic import ElasticReader

    reader = ElasticReader(values, cursors["material"])
    reader.define()
    return reader


def _is_elastic(cursor: Cursor) -> bool:
    """Return whether a part of the file has elastic data."""
    keys = (*_ELASTIC_KEYS, *ROD_BEAM_KEYS)
    return any(cursor.has(key) for key in keys)


def _points(
    placements: Placements,
    joints: Mapping[str, Joint | None],
    rods: Mapping[str, Rod | None],
) -> dict[str, dict[str, Placement]]:
    """Return the placements of frames, joints and rod ends, by name and then by body."""
    points: dict[str, dict[str, Placement]] = {}
    for name, frame in placements.frames.items():
        if frame is not None:
            points[name] = {frame.body: frame}
    for name, joint in joints.items():
        if joint is not None:
            points[name] = {end.body: end for end in (joint.parent, joint.child)}
    for name, rod in rods.items():
        if rod is not None:
            points[name] = {end.body: end for end in (rod.start, rod.end)}
    return points


def _freedoms(
    joints: Mapping[str, Joint | None], rods: Mapping[str, Rod | None], coordinates: Coordinates
) -> dict[str, Freedom]:
    """Return the `Freedom` of each coordinate of the valid joints and rods, by name."""
    freedoms = dict.fromkeys(coordinates.names, Freedom())
    for joint in joints.values():
        if joint is not None:
            freedoms |= dict(zip(joint.velocity_names, joint.freedoms, strict=False))
    for rod in rods.values():
        if rod is not None and rod.telescope is not None:
            freedoms[rod.name] = rod.telescope.freedom
    return freedoms


def texts(root: Cursor, key: str) -> tuple[str, ...]:
    """Return the texts of a list; empty if the key is absent."""
    list_cursor = root.get(key)
    return () if list_cursor is None else tuple(item.text or "" for item in list_cursor.items())


def _unstated_motors(
    root: Cursor, coordinates: Coordinates, *, has_actuators: bool
) -> tuple[str, ...]:
    """Return the coordinates that may have motors.

    Report unknown coordinates, and the key itself if the file also has actuators.
    """
    names = texts(root, "unstated_motors")
    if names and has_actuators:
        root.problem(
            "the file has actuators, so its motors are known", "remove this key", "unstated_motors"
        )
    list_cursor = root.get("unstated_motors")
    for item in () if list_cursor is None else list_cursor.items():
        coordinates.find(item, item.text or "")
    return names


def _parameters(root: Cursor, all_scopes: list[Scope]) -> ValueReader:
    values = ValueReader(root.get("provenance"))
    defined: dict[str, Cursor] = {}
    for scope in all_scopes:
        if scope.number:
            values.set_leg_number(scope.prefix, scope.number)
        for name, cursor in scope.parameters():
            if name in defined:
                cursor.problem(
                    f"the parameter is already defined in line {defined[name].line}",
                    "keep one of the two",
                )
            else:
                defined[name] = cursor
                values.define(name, cursor)
    values.resolve_all()
    return values


def _names_and_cursors(all_scopes: list[Scope]) -> tuple[Names, dict[str, dict[str, Cursor]]]:
    """Return the names of all elements, and the cursor of each element by section and name."""
    names = Names()
    cursors: dict[str, dict[str, Cursor]] = {kind: {} for kind in SECTIONS.values()}
    for scope in all_scopes:
        if scope.number:
            names.add(scope.prefix[:-1], "leg", scope.cursor)
        for section, kind in SECTIONS.items():
            for name, cursor in scope.elements(section):
                if kind == "visual":  # nothing refers to it, so it may share the name of a body
                    cursors[kind].setdefault(name, cursor)
                    continue
                if kind == "actuator" and names.kind(name) == "joint":
                    # nothing refers to an actuator, and other formats name motors after their
                    # joints
                    cursors[kind].setdefault(name, replace(cursor, leaf=f"{name}.motor"))
                    continue
                names.add(name, kind, cursor)
                cursors[kind].setdefault(name, cursor)
    return names, cursors


def check_connection(
    bodies: Mapping[str, Cursor], joints: Mapping[str, Joint | None], platform: Cursor | None
) -> None:
    """Report bodies that no chain of joints connects to the base; rods do not count.

    Args:
        bodies: cursor of each body.
        joints: the joints. Nothing is checked if one is invalid (None, or the platform's joint is
            missing).
        platform: cursor of the platform.
    """
    has_motion = platform is not None and platform.has("motion")
    if any(joint is None for joint in joints.values()) or (
        has_motion and PLATFORM_JOINT not in joints
    ):
        return
    reached = steps_from(
        BASE, (joint.bodies for joint in joints.values() if joint is not None and not joint.is_cut)
    )
    platform_body = platform.word("body") if platform is not None else None
    for name, cursor in bodies.items():
        if name not in reached:
            is_idle_platform = name == platform_body and not has_motion
            remedy = (
                "add platform.motion, or a joint"
                if is_idle_platform
                else "give it a joint (a rod is not a joint)"
            )
            cursor.problem(f"no chain of joints leads from {BASE} to {name}", remedy)


def check_actuators(
    cursors: Mapping[str, Cursor], actuators: Mapping[str, Actuator | None]
) -> None:
    """Report two actuators if each of them drives only the same coordinate."""
    owner: dict[str, str] = {}
    for name, actuator in actuators.items():
        if actuator is None or len(actuator.drives) != 1:
            continue
        coordinate = actuator.drives[0][0]
        if coordinate in owner:
            cursors[name].problem(
                f"{coordinate} is already driven by {owner[coordinate]}",
                "remove one of the two actuators, or couple them",
            )
        owner.setdefault(coordinate, name)
