"""Read machine files: from text to a frozen `Mechanism`; all problems are reported at once.

The machine as a whole is checked last: every body is connected to the base, and no degree of
freedom has two motors.
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
        text: the file's text (docs/machine-file.md).
        file: its name, for messages and provenance.
        folder: folder of the files that it refers to; None for a text without a file.

    Raises:
        DescriptionError: every problem of the file, each with line, key path and remedy.
    """
    return read_with_nodes(text, file, folder)[0]


def read_with_nodes(
    text: str, file: str, folder: Path | None = None
) -> tuple[Mechanism, dict[str, Node], Cursor]:
    """Return a mechanism, the nodes of its independent parameters by name, and the whole file.

    Parameters of other files, such as those of a drive line, have no node.

    Raises:
        DescriptionError: see `read_machine`.
    """
    root = document(parse_nodes(text, file), file, MACHINE, folder)
    parts = scopes(root)
    values = _parameters(root, parts)
    mechanism = _read(root, parts, values)
    root.collector.raise_any()
    if mechanism is None:
        raise AssertionError("reading failed without a reported problem")
    return mechanism, values.nodes, root


def _read(root: Cursor, parts: list[Scope], values: ValueReader) -> Mechanism | None:
    """Return the mechanism. Sections are read in the order in which they depend on each other."""
    names, places = _names(parts)
    placements = Placements(values, names)
    placements.define(places["frame"])
    gravity = values.vector(root.get("gravity"))
    platform_place = root.get("platform")

    elastic = _elastic_reader(root, places, values)
    bodies = {
        name: None if cursor.has("beams") else read_body(name, cursor, values)
        for name, cursor in places["body"].items()
    }
    joints = {
        name: read_joint(name, cursor, values, placements)
        for name, cursor in places["joint"].items()
    }
    rods = {
        name: read_rod(name, cursor, values, placements, elastic)
        for name, cursor in places["rod"].items()
    }
    points: dict[str, dict[str, Placement]] = {}
    if elastic is not None:
        for name, joint in joints.items():
            if joint is not None:
                compliance = elastic.compliance(places["joint"][name], joint)
                joints[name] = replace(joint, compliance=compliance)
        points = _points(placements, joints, rods)
        for name, cursor in places["body"].items():
            if cursor.has("beams"):
                bodies[name] = read_body(name, cursor, values, elastic, points)

    coordinates = _coordinates(places, platform_place, names)
    actuators = {
        name: read_actuator(name, cursor, values, coordinates)
        for name, cursor in places["actuator"].items()
    }
    losses = {
        name: read_loss(name, cursor, values, coordinates, actuators)
        for name, cursor in places["loss"].items()
    }
    freedoms = _freedoms(joints, rods, coordinates)
    couplings = {
        name: read_coupling(name, cursor, values, coordinates, freedoms)
        for name, cursor in places["coupling"].items()
    }
    motion = platform_joint(platform_place, values, names) if platform_place is not None else None
    platform = (
        read_platform(platform_place, placements, values, names, coordinates)
        if platform_place is not None
        else None
    )

    all_joints = {PLATFORM_JOINT: motion, **joints} if motion is not None else joints
    check_connection(places["body"], all_joints, platform_place)
    check_actuators(places["actuator"], actuators)
    unstated = _unstated_motors(root, coordinates, has_actuators=bool(actuators))
    solids = {
        n: read_visual(cursor, values, placements, places["rod"])
        for n, cursor in places["visual"].items()
    }
    tool = platform.tool if platform is not None else None
    outputs: dict[str, Output | None] = {}
    if places["output"]:
        output_reader = OutputReader(
            values, placements, coordinates, all_joints, rods, actuators, tool
        )
        outputs = output_reader.read(places["output"])
    damping = elastic.damping(root.get("damping")) if elastic is not None else None
    structures: dict[str, ReducedStructure | None] = {}
    if elastic is not None and places["structure"]:
        structures = _structures(places["structure"], values, names, points)
    elements = (bodies, all_joints, rods, couplings, actuators, losses, solids, outputs, structures)
    everything = (gravity, platform, *(element for kind in elements for element in kind.values()))
    if gravity is None or platform is None or None in everything:
        return None
    return Mechanism(
        name=root.word("name") or "",
        description=(root.word("description") or "").strip(),
        parameters=values.table(),
        gravity=gravity,
        bodies=_whole(bodies.values()),
        joints=_whole(all_joints.values()),
        rods=_whole(rods.values()),
        couplings=_whole(couplings.values()),
        actuators=_whole(actuators.values()),
        losses=_whole(losses.values()),
        platform=platform,
        solids=_whole(solids.values()),
        outputs=_whole(outputs.values()),
        omitted_forces=texts(root, "omitted_forces"),
        unknown_elements=texts(root, "unknown_elements"),
        unstated_motors=unstated,
        materials=_whole(elastic.used.values()) if elastic is not None else (),
        damping=damping,
        structures=_whole(structures.values()),
        file=root.collector.file,
    )


def _coordinates(
    places: Mapping[str, Mapping[str, Cursor]], platform_place: Cursor | None, names: Names
) -> Coordinates:
    """Return the coordinates of joints, telescopic rods and the platform's motion."""
    coordinates = Coordinates()
    for name, cursor in places["joint"].items():
        coordinates.add_joint(name, cursor.word("type") or "")
    for name, cursor in places["rod"].items():
        if cursor.has("telescopic"):
            coordinates.add_rod(name)
    if platform_place is not None and platform_place.has("motion"):
        if names.kind(PLATFORM_JOINT) in ("joint", "rod", "coupling", "actuator"):
            platform_place.problem(
                f"`motion` adds a joint named {PLATFORM_JOINT}, but a {names.kind(PLATFORM_JOINT)} has this name",
                "rename it",
                "motion",
            )
        coordinates.add_joint(PLATFORM_JOINT, platform_place.word("motion") or "")
    return coordinates


def _structures(
    places: Mapping[str, Cursor],
    values: ValueReader,
    names: Names,
    points: Mapping[str, Mapping[str, Placement]],
) -> dict[str, ReducedStructure | None]:
    """Return the reduced structures by name; None where a problem was noted."""
    from tauloop.mechanism.description.sections.structures import read_structure

    return {
        name: read_structure(name, cursor, values, names, points) for name, cursor in places.items()
    }


def _whole(elements: Iterable[Element | None]) -> tuple[Element, ...]:
    """Return the elements that are valid."""
    return tuple(element for element in elements if element is not None)


#: Keys of elastic data in a machine, body, joint or rod.
_ELASTIC_KEYS = frozenset(
    ("materials", "structures", "damping", "beams", "stiffness", "compliance", "contact")
)


def _elastic_reader(
    root: Cursor, places: Mapping[str, Mapping[str, Cursor]], values: ValueReader
) -> ElasticReader | None:
    """Return the reader of elastic data; None if the file has none.

    Its module is imported only when needed, because few machines have elastic data.
    """
    parts = [root]
    for kind in ("body", "joint", "rod"):
        parts += places[kind].values()
    for rod in places["rod"].values():
        links = (rod.get(key) for key in ("link", "lower", "upper"))
        parts += [link for link in links if link is not None]
    if not any(_is_elastic(part) for part in parts):
        return None
    from tauloop.mechanism.description.sections.elastic import ElasticReader

    reader = ElasticReader(values, places["material"])
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
    place = root.get(key)
    return () if place is None else tuple(item.text or "" for item in place.items())


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
    place = root.get("unstated_motors")
    for item in () if place is None else place.items():
        coordinates.find(item, item.text or "")
    return names


def _parameters(root: Cursor, parts: list[Scope]) -> ValueReader:
    values = ValueReader(root.get("provenance"))
    defined: dict[str, Cursor] = {}
    for scope in parts:
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


def _names(parts: list[Scope]) -> tuple[Names, dict[str, dict[str, Cursor]]]:
    """Return the names of all elements, and the cursor of each element by section and name."""
    names = Names()
    places: dict[str, dict[str, Cursor]] = {kind: {} for kind in SECTIONS.values()}
    for scope in parts:
        if scope.number:
            names.add(scope.prefix[:-1], "leg", scope.cursor)
        for section, kind in SECTIONS.items():
            for name, cursor in scope.elements(section):
                if kind == "visual":  # nothing refers to it, so it may share the name of a body
                    places[kind].setdefault(name, cursor)
                    continue
                if kind == "actuator" and names.kind(name) == "joint":
                    # nothing refers to an actuator, and other formats name motors after their
                    # joints
                    places[kind].setdefault(name, replace(cursor, leaf=f"{name}.motor"))
                    continue
                names.add(name, kind, cursor)
                places[kind].setdefault(name, cursor)
    return names, places


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


def check_actuators(places: Mapping[str, Cursor], actuators: Mapping[str, Actuator | None]) -> None:
    """Report two actuators if each of them drives only the same coordinate."""
    owner: dict[str, str] = {}
    for name, actuator in actuators.items():
        if actuator is None or len(actuator.drives) != 1:
            continue
        coordinate = actuator.drives[0][0]
        if coordinate in owner:
            places[name].problem(
                f"{coordinate} is already driven by {owner[coordinate]}",
                "remove one of the two actuators, or couple them",
            )
        owner.setdefault(coordinate, name)
