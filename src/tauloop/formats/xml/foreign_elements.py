"""Table of the elements of URDF, SDF and MJCF files: read, harmless or rejected.

An element that connects links or changes a mass must not be ignored, because the imported machine
would then silently differ from the file. Every element is therefore in one of three lists. Elements
of the first list are read. Elements of the second list are outside Tauloop's model (drawing,
sensors, contacts, control, settings of a simulation) and are counted in the notes. Elements of the
third list are rejected. An element that is in no list is rejected if its name contains one of
`TIE_WORDS`; otherwise `tauloop.check` reports the element as a problem of the machine.

`docs/foreign-elements.md` is generated from this table.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from functools import cache

from tauloop.common.records import dataclass
from tauloop.formats.xml.nodes import XmlNode, XmlReader

#: Root elements of the formats.
_ROOTS = ("robot", "sdf", "mujoco")
#: Matches any parent. In MJCF, the purpose of an element does not depend on its parent.
ANY_PARENT = "*"
#: Words in names of elements that connect links.
TIE_WORDS = (
    "constraint",
    "loop",
    "joint",
    "coupl",
    "bushing",
    "weld",
    "closure",
    "tendon",
    "cable",
    "spring",
    "gear",
    "mimic",
    "attach",
)
#: Words in the name or library of plugins that connect links.
PLUGIN_TIE_WORDS = (
    "attach",
    "detach",
    "mimic",
    "loop",
    "weld",
    "coupl",
    "gear",
    "spring",
    "constraint",
    "bushing",
    "tendon",
    "cable",
    "fixlink",
    "fix_link",
)
#: Words in the name or library of plugins that exert forces.
PLUGIN_FORCE_WORDS = (
    "buoyan",
    "hydrodynamic",
    "liftdrag",
    "lift_drag",
    "addedmass",
    "added_mass",
    "persistent_wrench",
    "gravitycompensation",
    "gravity_compensation",
)


class Treatment(enum.Enum):
    """Treatment of an element."""

    READ = "read"
    HARMLESS = "harmless"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRow:
    """Elements with the same treatment.

    Attributes:
        file_format: "urdf", "sdf" or "mjcf".
        parent: tag of the enclosing element; `ANY_PARENT` for any.
        tags: tags of the elements.
        treatment: treatment of the elements.
        meaning: purpose of the elements; for rejected elements, the reason and the remedy.
    """

    file_format: str
    parent: str
    tags: tuple[str, ...]
    treatment: Treatment
    meaning: str


def _rows(
    file_format: str, treatment: Treatment, *rows: tuple[str, str, str]
) -> tuple[ElementRow, ...]:
    """Return rows from triples of parent, tags separated by spaces, and meaning."""
    return tuple(
        ElementRow(
            file_format=file_format,
            parent=parent,
            tags=tuple(tags.split()),
            treatment=treatment,
            meaning=text,
        )
        for parent, tags, text in rows
    )


#: Elements of Drake for drawing and contacts.
DRAKE_APPEARANCE = (
    "drake:proximity_properties drake:perception_properties drake:illustration_properties "
    "drake:accepting_renderer drake:diffuse_map drake:ellipsoid drake:capsule "
    "drake:declare_convex drake:visual drake:deformable_properties"
)
_SENSING = "sensor camera light projector audio_sink audio_source battery particle_emitter"
_URDF = (
    *_rows(
        "urdf",
        Treatment.READ,
        ("robot", "link joint material", "the machine and its colors"),
        (
            "robot",
            "loop coupling",
            "loops and gears of GRBDA (generalized rigid-body dynamics algorithms)",
        ),
        ("robot", "constraint", "loops (urdfdom_headers pull request 108)"),
        ("robot", "drake:ball_constraint", "a ball joint that closes a loop"),
        (
            "robot",
            "loop_joint",
            "a ball joint that closes a loop (Isaac Sim); other types are rejected",
        ),
        (
            "robot",
            "transmission ros2_control",
            "driven joints and transmissions",
        ),
        (
            "link",
            "inertial visual",
            "inertia; shapes, which are only drawn",
        ),
        ("inertial", "origin mass inertia", "inertia of a link"),
        (
            "joint",
            "origin parent child axis limit dynamics mimic",
            "a joint; `<mimic>` is a gear",
        ),
        ("loop", "predecessor successor axis", "the two frames of a loop"),
        ("predecessor", "origin", "a frame of a loop"),
        ("successor", "origin", "a frame of a loop"),
        ("coupling", "predecessor successor ratio", "the two links of a gear"),
        ("loop_joint", "link1 link2", "the two frames of a loop"),
        (
            "constraint",
            "parent child parent_origin child_origin parent_axis child_axis",
            "the two frames of a loop",
        ),
        (
            "drake:ball_constraint",
            "drake:ball_constraint_body_A drake:ball_constraint_body_B drake:ball_constraint_p_AP "
            "drake:ball_constraint_p_BQ",
            "the two points that coincide",
        ),
    ),
    *_rows(
        "urdf",
        Treatment.HARMLESS,
        (
            "robot",
            "gazebo",
            "Gazebo extensions; joints, springs, gravity and plugins in it are checked",
        ),
        ("robot", "fixed_frame", "a named frame (Isaac Sim)"),
        ("robot", "mujoco compiler", "settings for MuJoCo's reader"),
        ("robot", f"sensor camera light {DRAKE_APPEARANCE}", "sensors and appearance"),
        (
            "robot",
            "drake:collision_filter_group self_collision_checking disable_collisions contact",
            "contacts",
        ),
        (
            "robot",
            "group group_state end_effector virtual_joint passive_joint chain",
            "planning groups (SRDF)",
        ),
        (
            "robot",
            "author license description publications publication version verbose capability",
            "texts",
        ),
        ("link", f"sensor light audio_source {DRAKE_APPEARANCE}", "sensors, sounds and appearance"),
        ("link", "collision", "contacts; drawn if no visual can be drawn"),
        ("link", "origin", "not part of URDF, and not read"),
        ("link", "contact self_collision_checking collision_checking capsule verbose", "contacts"),
        (
            "joint",
            "joint_properties",
            "damping and friction in an older form; reported unless zero",
        ),
        (
            "joint",
            "calibration safety_controller safety",
            "reference switches and soft limits of a controller",
        ),
        (
            "joint",
            "drake:controller_gains property hardwareInterface sensor verbose",
            "control and sensing",
        ),
    ),
    *_rows(
        "urdf",
        Treatment.REFUSED,
        (
            "robot",
            "drake:joint",
            "a joint that only Drake supports: replace it by `<joint>` or a side file",
        ),
        (
            "robot",
            "drake:linear_bushing_rpy drake:linear_spring_damper",
            "forces on links: use joint springs",
        ),
        (
            "robot",
            "drake:weld_constraint drake:distance_constraint drake:tendon_constraint",
            "a connection of links: close the loop by `<constraint>` or in a side file",
        ),
        ("robot", "drake:coupler_constraint", "a gear: use `<mimic>`"),
        (
            "joint",
            "drake:screw_thread_pitch",
            "a screw: couple a revolute and a prismatic joint in a side file",
        ),
        (
            "joint",
            "drake:rotor_inertia drake:gear_ratio",
            "Drake reads rotors only in a `<transmission>`: use its `<actuator>`",
        ),
    ),
)
_SDF = (
    *_rows(
        "sdf",
        Treatment.READ,
        ("sdf", "world model include", "the machine, possibly in a world"),
        (
            "world",
            "model gravity include",
            "machines, and gravity; an include that cannot be read is omitted",
        ),
        (
            "model",
            "model include",
            "a nested model or a model of another local file: its links, joints and frames",
        ),
        ("model", "link joint frame pose static", "the machine; a static model is scenery"),
        ("model", "tauloop:free", "a joint of six degrees of freedom, as Tauloop writes it"),
        ("model", "drake:ball_constraint", "a ball joint that closes a loop"),
        (
            "model",
            "transmission ros2_control",
            "driven joints and transmissions, as in a URDF; also in a plugin",
        ),
        (
            "link",
            "pose inertial visual collision gravity tauloop:massless",
            "a link, its inertia and shapes",
        ),
        (
            "inertial",
            "pose mass inertia density",
            "inertia; with `auto` it is computed from the collisions",
        ),
        ("inertia", "ixx iyy izz ixy ixz iyz", "moments of inertia"),
        ("joint", "parent child axis axis2 pose", "a joint"),
        ("joint", "tauloop:cut", "a joint that closes a loop, as Tauloop writes it"),
        ("joint", "drake:mimic gearbox_ratio gearbox_reference_body", "a gear"),
        ("joint", "screw_thread_pitch thread_pitch", "the travel of a screw"),
        ("joint", "drake:rotor_inertia drake:gear_ratio", "a rotor: n^2 J at the joint"),
        (
            "axis",
            "xyz dynamics limit use_parent_model_frame",
            "axis, damping, friction, springs and limits",
        ),
        ("axis", "mimic initial_position", "a gear, and the initial position"),
        (
            "axis2",
            "xyz use_parent_model_frame dynamics limit mimic initial_position",
            "the second axis",
        ),
        (
            "dynamics",
            "damping friction spring_stiffness spring_reference",
            "damping, friction and springs",
        ),
        ("limit", "lower upper effort velocity", "limits"),
        ("mimic", "multiplier offset reference", "q = multiplier (q_other - reference) + offset"),
        ("frame", "pose", "a named frame"),
        (
            "drake:ball_constraint",
            "drake:ball_constraint_body_A drake:ball_constraint_body_B drake:ball_constraint_p_AP "
            "drake:ball_constraint_p_BQ",
            "the two points that coincide",
        ),
    ),
    *_rows(
        "sdf",
        Treatment.HARMLESS,
        ("sdf", "light actor", "scenery"),
        ("world", "light actor road population state frame", "scenery and other models"),
        (
            "world",
            "physics scene gui audio wind magnetic_field atmosphere spherical_coordinates",
            "surroundings",
        ),
        ("world", "plugin", "simulation"),
        ("model", "plugin", "simulation; motors in it are read"),
        ("model", "gazebo", "Gazebo extensions of a URDF; motors in it are read"),
        (
            "model",
            "self_collide allow_auto_disable enable_wind",
            "simulation; wind is reported unless zero",
        ),
        ("model", "model_state", "a stored state of a simulation"),
        (
            "model",
            f"drake:collision_filter_group {DRAKE_APPEARANCE}",
            "contacts and appearance in Drake",
        ),
        ("link", f"{_SENSING} {DRAKE_APPEARANCE}", "sensors, lights and appearance"),
        (
            "link",
            "self_collide must_be_base_link enable_wind velocity_decay kinematic",
            "simulation",
        ),
        ("link", "frame", "a named frame of versions 1.5 and 1.6, which no pose may name"),
        ("inertial", "auto_inertia_params fluid_added_mass", "for meshes and fluids"),
        ("inertial", "frame", "a named frame of versions 1.5 and 1.6, which no pose may name"),
        ("joint", "frame", "a named frame of versions 1.5 and 1.6, which no pose may name"),
        ("joint", "physics sensor", "settings of solvers; sensors"),
        ("joint", "drake:controller_gains drake:acceleration", "control in Drake"),
        ("limit", "stiffness dissipation drake:acceleration", "stops"),
        ("dynamics", "drake:controller_gains", "control in Drake"),
    ),
    *_rows(
        "sdf",
        Treatment.REFUSED,
        ("world", "joint", "a joint between models: put all links into one model"),
        ("model", "gripper", "it fixes grasped objects: remove it, or add its joints"),
        ("model", "drake:joint", "a joint that only Drake supports: replace it by `<joint>`"),
        (
            "model",
            "drake:linear_bushing_rpy drake:linear_spring_damper",
            "forces on links: use joint springs",
        ),
        (
            "model",
            "drake:weld_constraint drake:distance_constraint drake:tendon_constraint",
            "a connection of links: use a joint or a `drake:ball_constraint`",
        ),
        ("model", "drake:coupler_constraint", "a gear: use `<mimic>`"),
        (
            "joint",
            "drake:screw_thread_pitch",
            "a screw: couple a revolute and a prismatic joint in a side file",
        ),
    ),
)
_MJCF = (
    *_rows(
        "mjcf",
        Treatment.READ,
        (ANY_PARENT, "mujoco compiler option flag default custom numeric text", "settings"),
        (ANY_PARENT, "include", "another local file, whose elements replace it"),
        (ANY_PARENT, "worldbody body frame joint freejoint inertial geom site", "the machine"),
        (ANY_PARENT, "asset mesh material", "appearance"),
        (
            ANY_PARENT,
            "equality connect weld tendon fixed spatial pulley",
            "loops, gears and cables",
        ),
        (ANY_PARENT, "actuator general motor", "motors"),
        (
            ANY_PARENT,
            "position velocity intvelocity damper cylinder muscle adhesion dcmotor pid orientation",
            "actuators, read as ideal motors; one that drives no hinge or slide is omitted and reported",
        ),
        ("actuator", "plugin", "a motor with a control law, read as an ideal motor"),
        (ANY_PARENT, "keyframe key", "start poses that can be chosen"),
        (ANY_PARENT, "deformable", "a container; elements in it are listed separately"),
    ),
    *_rows(
        "mjcf",
        Treatment.HARMLESS,
        (
            ANY_PARENT,
            "visual statistic size global quality headlight map scale rgba",
            "appearance",
        ),
        (ANY_PARENT, "camera light texture layer hfield skin bone model", "appearance"),
        (ANY_PARENT, "contact pair exclude", "contacts"),
        (ANY_PARENT, "sensor", "sensors"),
        (
            ANY_PARENT,
            "extension tuple element user lengthrange",
            "settings of plugins and of the compiler",
        ),
        ("geom", "plugin", "a shape"),
        ("mesh", "plugin", "a shape"),
    ),
    *_rows(
        "mjcf",
        Treatment.REFUSED,
        (
            ANY_PARENT,
            "replicate composite flexcomp attach plugin",
            "a generator of elements: let MuJoCo save the compiled model (mj_saveLastXML)",
        ),
        (
            ANY_PARENT,
            "flex flexvert flexstrain pin",
            "a flexible body: replace it by bodies with joints and springs",
        ),
    ),
)
#: The three lists of all formats.
ELEMENT_ROWS: tuple[ElementRow, ...] = (*_URDF, *_SDF, *_MJCF)


@cache
def _rows_by_parent_and_tag(file_format: str) -> dict[tuple[str, str], ElementRow]:
    """Return the rows of a format by the tags of parent and element."""
    return {
        (row.parent, tag): row
        for row in ELEMENT_ROWS
        if row.file_format == file_format
        for tag in row.tags
    }


def row_of(file_format: str, parent: str, tag: str) -> ElementRow | None:
    """Return the row of an element in a file of a format; None if the element is unknown."""
    rows = _rows_by_parent_and_tag(file_format)
    return rows.get((parent, tag)) or rows.get((ANY_PARENT, tag))


def read_tags(file_format: str) -> dict[str, set[str]]:
    """Return the tags that are read, by the tag of their parent."""
    tags: dict[str, set[str]] = {}
    for row in ELEMENT_ROWS:
        if row.file_format == file_format and row.treatment is Treatment.READ:
            tags.setdefault(row.parent, set()).update(row.tags)
    return tags


def is_entered(file_format: str, tag: str) -> bool:
    """Return whether the table has rows for the elements inside an element with this tag."""
    return any(parent in (tag, ANY_PARENT) for parent, _ in _rows_by_parent_and_tag(file_format))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An unread element: its node, the tag of its parent, and its row (None if unknown)."""

    node: XmlNode
    parent: str
    row: ElementRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The elements of a file that are not read.

    Attributes:
        harmless: number of harmless elements by name: TAG, or "TAG of PARENT" below the top level.
        refused: rejected elements, including unknown ones with a `TIE_WORDS` word in the name.
        unknown: elements in none of the lists.
    """

    harmless: dict[str, int]
    refused: tuple[Unread, ...]
    unknown: tuple[Unread, ...]

    def unknown_texts(self) -> tuple[str, ...]:
        """Return a text for each name of unknown elements, with the line of the first one."""
        groups: dict[str, list[int]] = {}
        for item in self.unknown:
            groups.setdefault(f"<{item.node.tag}> of <{item.parent}>", []).append(item.node.line)
        texts = []
        for name, lines in groups.items():
            if len(lines) == 1:
                texts.append(f"{name} (line {lines[0]})")
            else:
                texts.append(f"{name} ({len(lines)}, first on line {lines[0]})")
        return tuple(texts)


def inventory(file_format: str, *roots: XmlNode) -> Inventory:
    """Return the elements inside other elements that are not read.

    Args:
        file_format: "urdf", "sdf" or "mjcf".
        roots: elements whose contents are searched, except inside harmless elements.
    """
    harmless: Counter[str] = Counter()
    refused: list[Unread] = []
    unknown: list[Unread] = []
    root_ids = {id(root) for root in roots}

    def visit(node: XmlNode) -> None:
        for child in node.children:
            row = row_of(file_format, node.tag, child.tag)
            item = Unread(node=child, parent=node.tag, row=row)
            if row is None:
                if any(word in child.tag.lower() for word in TIE_WORDS):
                    refused.append(item)
                else:
                    unknown.append(item)
            elif row.treatment is Treatment.REFUSED:
                refused.append(item)
            elif row.treatment is Treatment.HARMLESS:
                is_top_level = id(node) in root_ids
                harmless[child.tag if is_top_level else f"{child.tag} of {node.tag}"] += 1
            elif is_entered(file_format, child.tag):
                visit(child)

    for root in roots:
        visit(root)
    return Inventory(harmless=dict(harmless), refused=tuple(refused), unknown=tuple(unknown))


def refuse(reader: XmlReader, refused: tuple[Unread, ...], remedy: str) -> None:
    """Add a problem for each rejected element.

    Args:
        reader: collects problems.
        refused: elements from an `Inventory`.
        remedy: remedy for unknown elements.
    """
    for item in refused:
        location = "" if item.parent in _ROOTS else f" in a {item.parent}"
        name = item.node.attributes.get("name", item.node.tag)
        advice = remedy if item.row is None else item.row.meaning.replace("`", "")
        reader.problem(item.node, name, f"<{item.node.tag}>{location} is not supported", advice)


def plugins(node: XmlNode) -> Iterator[tuple[XmlNode, str]]:
    """Yield plugins that connect links ("tie") or exert forces on them ("force")."""
    for plugin in node.walk():
        if plugin.tag != "plugin":
            continue
        text = " ".join(plugin.attributes.values()).lower()
        if any(word in text for word in PLUGIN_TIE_WORDS):
            yield plugin, "tie"
        elif any(word in text for word in PLUGIN_FORCE_WORDS):
            yield plugin, "force"
