"""Table of the elements of URDF, SDF and MJCF files: read, harmless or rejected.

An element that ties links together or changes a mass must not be ignored: the result would silently
be another machine. Every element is therefore in one of three lists. Elements of the first list are
read. Those of the second have no effect on the motion (they draw, sense, collide or configure a
simulation) and are counted in the notes. Those of the third are rejected by name. `check` reports
an element that is in none of the lists as a problem of the machine; it is rejected if its name
contains a word for a tie (`TIE_WORDS`).

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
#: Matches any parent: in MJCF, elements of one name have one purpose.
ANY_PARENT = "*"
#: Words in names of elements that tie links together.
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
#: Words in the name or library of a plugin that ties links together, and of one that pushes them.
PLUGIN_TIE_WORDS = (
    *(
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
    ),
    *("cable", "fixlink", "fix_link"),
)
PLUGIN_FORCE_WORDS = (
    *(
        "buoyan",
        "hydrodynamic",
        "liftdrag",
        "lift_drag",
        "addedmass",
        "added_mass",
        "persistent_wrench",
    ),
    *("gravitycompensation", "gravity_compensation"),
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
        meaning: purpose of the elements; for rejected ones the reason and the remedy.
    """

    file_format: str
    parent: str
    tags: tuple[str, ...]
    treatment: Treatment
    meaning: str


def _rows(
    file_format: str, treatment: Treatment, *rows: tuple[str, str, str]
) -> tuple[ElementRow, ...]:
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


#: Elements by which Drake draws links and finds contacts.
DRAKE_LOOKS = (
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
        ("robot", "loop coupling", "loops and gears of GRBDA"),
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
            "driven joints and transmissions; what is in them is read apart",
        ),
        (
            "link",
            "inertial visual",
            "inertia; shapes, which are drawn and have no effect on the motion",
        ),
        ("inertial", "origin mass inertia", "inertia of a link"),
        (
            "joint",
            "origin parent child axis limit dynamics mimic",
            "a joint, and the gear that `<mimic>` is",
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
            "extensions of Gazebo; joints in it are read, springs, gravity and plugins looked for",
        ),
        ("robot", "fixed_frame", "a named frame (Isaac Sim)"),
        ("robot", "mujoco compiler", "settings for MuJoCo's reader"),
        ("robot", f"sensor camera light {DRAKE_LOOKS}", "sensors and looks"),
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
        ("link", f"sensor light audio_source {DRAKE_LOOKS}", "sensors, sounds and looks"),
        ("link", "collision", "contacts; drawn where no visual can be"),
        ("link", "origin", "not part of URDF; readers of URDF do not use it"),
        ("link", "contact self_collision_checking collision_checking capsule verbose", "contacts"),
        ("joint", "joint_properties", "an older form of losses, reported where they are not zero"),
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
            "a joint that only Drake sees: write it as `<joint>` or in a side file",
        ),
        (
            "robot",
            "drake:linear_bushing_rpy drake:linear_spring_damper",
            "it pushes links: use springs of joints",
        ),
        (
            "robot",
            "drake:weld_constraint drake:distance_constraint drake:tendon_constraint",
            "it ties links together: close the loop by `<constraint>` or in a side file",
        ),
        ("robot", "drake:coupler_constraint", "a gear: write `<mimic>`"),
        (
            "joint",
            "drake:screw_thread_pitch",
            "a screw: couple a revolute and a prismatic joint in a side file",
        ),
        (
            "joint",
            "drake:rotor_inertia drake:gear_ratio",
            "Drake reads it in a URDF's `<transmission>`: move it into the `<actuator>` there",
        ),
    ),
)
_SDF = (
    *_rows(
        "sdf",
        Treatment.READ,
        ("sdf", "world model include", "the machine, alone or in a world"),
        (
            "world",
            "model gravity include",
            "machines, and gravity; an include that cannot be read is left out",
        ),
        (
            "model",
            "model include",
            "a model in it, or of another local file: its links, joints and frames",
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
            "inertia; with `auto` it follows from the collisions",
        ),
        ("inertia", "ixx iyy izz ixy ixz iyz", "moments of inertia"),
        ("joint", "parent child axis axis2 pose", "a joint"),
        ("joint", "tauloop:cut", "a joint that closes a loop, as Tauloop writes it"),
        ("joint", "drake:mimic gearbox_ratio gearbox_reference_body", "a gear"),
        ("joint", "screw_thread_pitch thread_pitch", "the travel of a screw"),
        ("joint", "drake:rotor_inertia drake:gear_ratio", "a rotor: n^2 J at the joint"),
        ("axis", "xyz dynamics limit use_parent_model_frame", "axis, losses, springs and limits"),
        ("axis", "mimic initial_position", "a gear, and the start"),
        (
            "axis2",
            "xyz use_parent_model_frame dynamics limit mimic initial_position",
            "the second axis",
        ),
        ("dynamics", "damping friction spring_stiffness spring_reference", "losses and springs"),
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
        ("world", "plugin", "simulation; what ties or pushes links is looked for by name"),
        (
            "model",
            "plugin",
            "simulation; motors in it are read, what ties or pushes links is looked for by name",
        ),
        ("model", "gazebo", "what a URDF has for Gazebo; motors in it are read"),
        (
            "model",
            "self_collide allow_auto_disable enable_wind",
            "simulation; wind is reported where it blows",
        ),
        ("model", "model_state", "a stored state of a simulation"),
        ("model", f"drake:collision_filter_group {DRAKE_LOOKS}", "contacts and looks in Drake"),
        ("link", f"{_SENSING} {DRAKE_LOOKS}", "sensors, lights and looks"),
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
        ("model", "gripper", "it holds what it grasps: remove it, or write its joints"),
        ("model", "drake:joint", "a joint that only Drake sees: write it as `<joint>`"),
        (
            "model",
            "drake:linear_bushing_rpy drake:linear_spring_damper",
            "it pushes links: use springs of joints",
        ),
        (
            "model",
            "drake:weld_constraint drake:distance_constraint drake:tendon_constraint",
            "it ties links together: write a joint, or a `drake:ball_constraint`",
        ),
        ("model", "drake:coupler_constraint", "a gear: write `<mimic>`"),
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
        (ANY_PARENT, "include", "another local file, whose elements take its place"),
        (ANY_PARENT, "worldbody body frame joint freejoint inertial geom site", "the machine"),
        (ANY_PARENT, "asset mesh material", "what is drawn"),
        (
            ANY_PARENT,
            "equality connect weld tendon fixed spatial pulley",
            "loops, gears and cables",
        ),
        (ANY_PARENT, "actuator general motor", "motors"),
        (
            ANY_PARENT,
            "position velocity intvelocity damper cylinder muscle adhesion dcmotor pid orientation",
            "servos, as ideal motors; one that drives no hinge or slide is left out and reported",
        ),
        ("actuator", "plugin", "a motor with a control law, as an ideal motor"),
        (ANY_PARENT, "keyframe key", "starts that can be chosen"),
        (ANY_PARENT, "deformable", "its parts are rejected by name"),
    ),
    *_rows(
        "mjcf",
        Treatment.HARMLESS,
        (
            ANY_PARENT,
            "visual statistic size global quality headlight map scale rgba",
            "what is drawn",
        ),
        (ANY_PARENT, "camera light texture layer hfield skin bone model", "what is drawn"),
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
            "it creates parts that are not in the file: let MuJoCo write the model out (mj_saveLastXML)",
        ),
        (
            ANY_PARENT,
            "flex flexvert flexstrain pin",
            "a flexible part: replace it by bodies with joints and springs",
        ),
    ),
)
#: Every element that has a place in one of the three lists.
ELEMENT_ROWS: tuple[ElementRow, ...] = (*_URDF, *_SDF, *_MJCF)


@cache
def _by_place(file_format: str) -> dict[tuple[str, str], ElementRow]:
    return {
        (row.parent, tag): row
        for row in ELEMENT_ROWS
        if row.file_format == file_format
        for tag in row.tags
    }


def row_of(file_format: str, parent: str, tag: str) -> ElementRow | None:
    """Return the row of an element in a file of a format; None if it is in none of the lists."""
    rows = _by_place(file_format)
    return rows.get((parent, tag)) or rows.get((ANY_PARENT, tag))


def read_tags(file_format: str) -> dict[str, set[str]]:
    """Return the tags that are read, by the tag of their parent."""
    tags: dict[str, set[str]] = {}
    for row in ELEMENT_ROWS:
        if row.file_format == file_format and row.treatment is Treatment.READ:
            tags.setdefault(row.parent, set()).update(row.tags)
    return tags


def is_entered(file_format: str, tag: str) -> bool:
    """Return whether the elements inside an element of that tag have rows of their own."""
    return any(parent in (tag, ANY_PARENT) for parent, _ in _by_place(file_format))


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
        harmless: number of harmless elements by name, "TAG of PARENT" below the top.
        refused: rejected elements, including unknown ones with a word for a tie in the name.
        unknown: elements in none of the lists.
    """

    harmless: dict[str, int]
    refused: tuple[Unread, ...]
    unknown: tuple[Unread, ...]

    def unknown_texts(self) -> tuple[str, ...]:
        """Return the unknown elements as texts, grouped by name, with the line of the first."""
        groups: dict[str, list[int]] = {}
        for item in self.unknown:
            groups.setdefault(f"<{item.node.tag}> of <{item.parent}>", []).append(item.node.line)
        return tuple(
            f"{name} (line {lines[0]})"
            if len(lines) == 1
            else f"{name} ({len(lines)}, first on line {lines[0]})"
            for name, lines in groups.items()
        )


def inventory(file_format: str, *roots: XmlNode) -> Inventory:
    """Return the unread contents of elements; harmless elements are not entered.

    Args:
        file_format: "urdf", "sdf" or "mjcf".
        roots: elements, all of which are read, whose contents are searched.
    """
    harmless: Counter[str] = Counter()
    refused: list[Unread] = []
    unknown: list[Unread] = []
    tops = {id(root) for root in roots}

    def visit(node: XmlNode) -> None:
        for child in node.children:
            row = row_of(file_format, node.tag, child.tag)
            item = Unread(node=child, parent=node.tag, row=row)
            if row is None:
                is_tie = any(word in child.tag.lower() for word in TIE_WORDS)
                (refused if is_tie else unknown).append(item)
            elif row.treatment is Treatment.REFUSED:
                refused.append(item)
            elif row.treatment is Treatment.HARMLESS:
                harmless[child.tag if id(node) in tops else f"{child.tag} of {node.tag}"] += 1
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
        place = "" if item.parent in _ROOTS else f" in a {item.parent}"
        name = item.node.attributes.get("name", item.node.tag)
        meaning = remedy if item.row is None else item.row.meaning.replace("`", "")
        reader.problem(item.node, name, f"<{item.node.tag}>{place} is not read", meaning)


def plugins(node: XmlNode) -> Iterator[tuple[XmlNode, str]]:
    """Yield plugins that tie links together ("tie") or push them ("force")."""
    for plugin in node.walk():
        if plugin.tag != "plugin":
            continue
        text = " ".join(plugin.attributes.values()).lower()
        if any(word in text for word in PLUGIN_TIE_WORDS):
            yield plugin, "tie"
        elif any(word in text for word in PLUGIN_FORCE_WORDS):
            yield plugin, "force"
