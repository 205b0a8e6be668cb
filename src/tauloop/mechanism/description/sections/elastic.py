"""Elastic data of a machine file: materials, sections along rods and bodies, compliances, damping."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from tauloop.common.records import dataclass
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    Cursor,
    ListOf,
    MapOf,
    Shape,
    Value,
    chosen,
    need,
)
from tauloop.mechanism.description.documents import open_document
from tauloop.mechanism.description.elastic_grammar import GROUP, MATERIAL, SECTION_KEYS
from tauloop.mechanism.description.grammar import PROVENANCE
from tauloop.mechanism.description.sections.joints import read_direction
from tauloop.mechanism.description.structure import note_unknown
from tauloop.mechanism.description.units import shown
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.elastic.beams import (
    DIRECTIONS,
    Beam,
    BeamSegment,
    BodyBeam,
    Compliance,
    Damping,
    entry_dimension,
)
from tauloop.mechanism.elastic.inertia import mass_gap
from tauloop.mechanism.elastic.sections import SECTION_DIMENSIONS, Material, Section
from tauloop.mechanism.expression import (
    ONE,
    ZERO,
    Call,
    Constant,
    Expression,
    Parameter,
    add,
    divide,
    leaves,
    multiply,
    subtract,
    triple,
)
from tauloop.mechanism.model import (
    JOINT_KINDS,
    Inertia,
    Joint,
    Placement,
    SlenderPart,
    Telescope,
    Vector,
)
from tauloop.mechanism.suggestions import listing

#: Largest Poisson's ratio of an isotropic material.
_MAX_POISSON = 0.5
#: Relative difference below which two bending stiffnesses count as equal, so that the section needs
#: no orientation.
_EQUAL_BENDING = 1e-9
#: A beam and the z axis of its section count as parallel if the sine of the angle between them is
#: smaller than this.
_PARALLEL = 1e-6
#: Asymmetries and negative eigenvalues up to this size, relative to the diagonal, count as rounding
#: errors.
_ROUNDING = 1e-9

_COMPOSITE_KEYS = SECTION_DIMENSIONS["section"]

MATERIALS_FORMAT = "tauloop-materials/1"
_TABLE = Shape(
    name="table of materials",
    doc="Materials with their sources.",
    fields=(
        need("format", Choice(options=(MATERIALS_FORMAT,)), "format and version"),
        need("provenance", PROVENANCE, "status and source of values that state none"),
        need("materials", MapOf(item=MATERIAL), "the materials"),
    ),
)


@lru_cache(maxsize=1)
def material_table() -> Mapping[str, tuple[Material, tuple[Parameter, ...]]]:
    """Return the materials that machine files may name without defining them.

    Each has its independent parameters, named ``MATERIAL.density`` and so on.
    """
    root = open_document(Path(__file__).parents[2] / "materials.yaml", _TABLE)
    values = ValueReader(root.get("provenance"))
    materials = {}
    for name, cursor in root.entries_of("materials"):
        materials[name] = read_material(name, replace(cursor, leaf=name), values)
    root.collector.raise_any()
    table = values.table()
    shipped = {}
    for name, material in materials.items():
        if material is None:
            continue
        names = leaves(material)
        parameters = tuple(parameter for parameter in table if parameter.name in names)
        shipped[name] = (material, parameters)
    return shipped


def read_material(name: str, cursor: Cursor, values: ValueReader) -> Material | None:
    """Return a material, or None after adding a problem."""
    E = values.expression(cursor.get("young_modulus"))
    density = values.expression(cursor.get("density"))
    G = values.expression(cursor.get("shear_modulus"))
    poisson = values.expression(cursor.get("poisson_ratio"))
    if not cursor.has("shear_modulus") and not cursor.has("poisson_ratio"):
        cursor.problem(
            "neither `shear_modulus` nor `poisson_ratio` is given",
            "add `poisson_ratio`, for example 0.3 for most metals",
            "shear_modulus",
        )
    if poisson is not None and values.nominal(poisson) > _MAX_POISSON:
        cursor.problem(
            f"Poisson's ratio must be between 0 and 0.5, got {values.nominal(poisson):g}",
            "correct the value",
            "poisson_ratio",
        )
    expansion = values.expression(cursor.get("expansion"))
    strength = values.expression(cursor.get("strength"))
    if E is None or density is None or (G is None and poisson is None):
        return None
    two = Constant(2.0)
    if G is None and poisson is not None:
        G = divide(E, multiply(two, add(ONE, poisson)))
    elif poisson is None and G is not None:
        poisson = subtract(divide(E, multiply(two, G)), ONE)
        ratio = values.nominal(poisson)
        if not 0.0 <= ratio <= _MAX_POISSON:
            cursor.problem(
                f"the moduli give Poisson's ratio {ratio:.3g}; an isotropic material has 0 to 0.5",
                "add `poisson_ratio` if the material is not isotropic, or correct a modulus",
                "shear_modulus",
            )
    if G is None or poisson is None:
        return None
    return Material(
        name=name,
        young_modulus=E,
        shear_modulus=G,
        poisson_ratio=poisson,
        density=density,
        expansion=expansion,
        strength=strength,
    )


@dataclass(slots=True)
class ElasticReader:
    """Reader of sections and beams, with the materials of the file and of Tauloop's table.

    Attributes:
        values: reads values.
        cursors: cursors of the file's materials, by name.
        used: the materials of the file, and those of the table that sections refer to.
    """

    values: ValueReader
    cursors: Mapping[str, Cursor]
    used: dict[str, Material | None] = field(default_factory=dict)

    def define(self) -> None:
        """Read the materials of the file."""
        for name, cursor in self.cursors.items():
            self.used[name] = read_material(name, cursor, self.values)

    def _material(self, cursor: Cursor | None) -> Material | None:
        """Return the material to which a section refers, or None after adding a problem."""
        if cursor is None or not cursor.text:
            return None
        name = cursor.text
        if name in self.used:
            return self.used[name]
        table = material_table()
        if name not in table:
            note_unknown(cursor, name, "material", (*self.cursors, *table))
            return None
        material, parameters = table[name]
        conflicts = [p.name for p in parameters if p.name in self.values.parameter_names]
        if conflicts:
            cursor.problem(
                f"the parameter {conflicts[0]} has the same name as a value in the table of "
                "materials",
                f"rename it, or define {name} under `materials`",
            )
            return None
        self.values.adopt(parameters)
        self.used[name] = material
        return material

    # Sections

    def _section(self, cursor: Cursor) -> Section | None:
        """Return the section of a mapping; None if it has no section or after adding a problem.

        The mapping has at most one key of `SECTION_DIMENSIONS`.
        """
        kind = next((name for name in SECTION_DIMENSIONS if cursor.has(name)), None)
        section_cursor = cursor.get(kind) if kind is not None else None
        if kind is None or section_cursor is None:
            return None
        if kind == "section":
            return self._composite(section_cursor)
        material = self._material(section_cursor.get("material"))
        expressions = [
            self.values.expression(section_cursor.get(key)) for key in SECTION_DIMENSIONS[kind]
        ]
        dimensions = tuple(value for value in expressions if value is not None)
        if len(dimensions) < len(expressions):
            return None
        section = Section(kind=kind, dimensions=dimensions, material=material)
        fits = self._has_room(section, section_cursor)
        if material is None or not fits:
            return None
        return section

    def _has_room(self, section: Section, cursor: Cursor) -> bool:
        """Return whether the wall fits in the section; report it otherwise."""
        excess = section.excessive_wall(self.values.nominal)
        if excess is None:
            return True
        name = "radius" if section.kind == "tube" else "half of the smaller side"
        wall, largest_wall = excess
        comparison = f"{shown(wall, units.LENGTH)} > {shown(largest_wall, units.LENGTH)}"
        cursor.problem(
            f"the wall is thicker than the {name}: {comparison}",
            "correct one of them; `outer`, `width` and `height` are whole outer dimensions",
            "wall",
        )
        return False

    def _composite(self, cursor: Cursor) -> Section | None:
        """Return a section that is defined by its stiffnesses, or None after adding a problem."""
        expressions = {
            name: self.values.expression(cursor.get(name)) for name in (*_COMPOSITE_KEYS, "EI")
        }
        if cursor.has("EI") and (cursor.has("EIy") or cursor.has("EIz")):
            cursor.problem("EI is the stiffness about both axes", "give EI, or EIy and EIz", "EI")
            return None
        if cursor.has("EI"):
            expressions["EIy"] = expressions["EIz"] = expressions["EI"]
        missing = [name for name in ("EIy", "EIz") if not cursor.has(name) and not cursor.has("EI")]
        if missing:
            what = "the bending stiffness EI" if len(missing) == 2 else missing[0]
            cursor.problem(f"{what} is missing", "add EI, or EIy and EIz", missing[0])
        expansion = self.values.expression(cursor.get("expansion"))
        values = [expressions[name] for name in _COMPOSITE_KEYS]
        dimensions = tuple(value for value in values if value is not None)
        if len(dimensions) < len(_COMPOSITE_KEYS):
            return None
        return Section(kind="section", dimensions=dimensions, expansion=expansion)

    def _segment(self, cursor: Cursor, length: Expression) -> BeamSegment | None:
        """Return a segment of a beam with the section or taper of a mapping."""
        taper = cursor.get("taper")
        if taper is None:
            section = self._section(cursor)
            return (
                None if section is None else BeamSegment(length=length, start=section, end=section)
            )
        ends = [taper.get(key) for key in ("start", "end")]
        sections = [self._section(end) if _one_section(end) else None for end in ends if end]
        if len(sections) < 2 or sections[0] is None or sections[1] is None:
            return None
        start, end = sections[0], sections[1]
        if (start.kind, start.material, start.expansion) != (end.kind, end.material, end.expansion):
            taper.problem(
                "a taper needs one kind of section and material, got "
                f"{_section_text(start)} and {_section_text(end)}",
                "use the same kind and material at both ends, or `segments`",
            )
            return None
        return BeamSegment(length=length, start=start, end=end)

    # Beams

    def beam(
        self,
        cursor: Cursor,
        length: Expression | None,
        stated_mass: Expression | None,
        *,
        is_unchecked: bool = False,
    ) -> Beam | None:
        """Return the beam of a mapping; None if there is none or after adding a problem.

        Args:
            cursor: a rod, a part of a rod, or a beam of a body.
            length: length of the beam; None if it is invalid.
            stated_mass: mass in the file; None if the file states none.
            is_unchecked: whether that mass is not compared with the section (`unchecked: yes`).
        """
        keys = [key for key in SECTION_KEYS if cursor.has(key)]
        if not keys:
            for key in ("fittings", "distributed"):
                if cursor.has(key):
                    cursor.problem(
                        f"`{key}` requires a section, but there is none",
                        f"add a section ({listing(SECTION_KEYS)}), or remove `{key}`",
                        key,
                    )
            return None
        if len(keys) > 1:
            cursor.problem(f"two sections are given: {listing(keys)}", "keep one of them", keys[1])
            return None
        fittings = self._fittings(cursor)
        if length is None:
            return None
        segments = self._segments(cursor, length)
        if not segments:
            return None
        lengths = [segment.has("length") for segment in cursor.items_of("segments")]
        beam = Beam(
            length=length,
            segments=segments,
            rest=lengths.index(False) if lengths else 0,
            fittings=fittings,
            is_distributed=cursor.word("distributed") == "yes",
        )
        self.check_mass(
            cursor,
            (beam,),
            stated_mass,
            is_distributed=beam.is_distributed,
            is_unchecked=is_unchecked,
        )
        return beam

    def _fittings(self, cursor: Cursor) -> tuple[Expression, Expression] | None:
        """Return the masses of the fittings at both ends of a beam; None if there are none."""
        fittings = cursor.get("fittings")
        if fittings is None:
            return None
        start = self.values.expression(fittings.get("start"))
        end = self.values.expression(fittings.get("end"))
        return (ZERO if start is None else start, ZERO if end is None else end)

    def _segments(self, cursor: Cursor, length: Expression) -> tuple[BeamSegment, ...]:
        """Return the segments of a beam (empty after adding a problem)."""
        if not cursor.has("segments"):
            segment = self._segment(cursor, length)
            return () if segment is None else (segment,)
        cursors = cursor.items_of("segments")
        lengths = [
            self.values.expression(segment_cursor.get("length")) for segment_cursor in cursors
        ]
        without_length = [
            i for i, segment_cursor in enumerate(cursors) if not segment_cursor.has("length")
        ]
        if len(without_length) != 1:
            cursor.problem(
                f"{len(without_length)} segments have no length",
                "omit the length of exactly one segment; it fills the rest of the beam",
                "segments",
            )
            return ()
        known = [value for value in lengths if value is not None]
        if len(known) != len(cursors) - 1:
            return ()
        rest = length
        for value in known:
            rest = subtract(rest, value)
        total = self.values.nominal(length)
        if not self.values.nominal(rest) > 0.0:
            used_length = sum(self.values.nominal(value) for value in known)
            cursor.problem(
                f"the segments are {used_length:.6g} m long and leave nothing of the beam's length, "
                f"{total:.6g} m",
                "shorten the segments",
                "segments",
            )
            return ()
        lengths[without_length[0]] = rest
        segments = []
        for segment_cursor, segment_length in zip(cursors, lengths, strict=True):
            if _one_section(segment_cursor) and segment_length is not None:
                segments.append(self._segment(segment_cursor, segment_length))
        valid_segments = tuple(segment for segment in segments if segment is not None)
        return valid_segments if len(valid_segments) == len(cursors) else ()

    def check_mass(
        self,
        cursor: Cursor,
        beams: Collection[Beam],
        stated_mass: Expression | None,
        *,
        is_distributed: bool,
        is_unchecked: bool = False,
    ) -> None:
        """Report a stated mass that contradicts sections and fittings, unless it is unchecked.

        A larger stated mass is accepted even if the file does not state where the rest is located
        (see `tauloop.mechanism.elastic.inertia.element_masses`).
        """
        value = self.values.nominal
        has_fittings = any(beam.fittings is not None for beam in beams)
        if is_distributed and stated_mass is None:
            cursor.problem(
                "`distributed` spreads a stated mass, but no mass is stated",
                "state the mass, or remove `distributed`",
                "distributed",
            )
        if is_distributed and has_fittings:
            cursor.problem(
                "`fittings` and `distributed` both state where the rest of the mass is",
                "keep one of them",
                "distributed",
            )
            return
        if stated_mass is None or is_unchecked:
            return
        mass = value(stated_mass)
        sections = sum(value(beam.section_mass().mass) for beam in beams)
        fittings = sum(value(add(*beam.fittings)) for beam in beams if beam.fittings is not None)
        gap = mass_gap(mass, sections + fittings)
        section_text = f"the section's {sections:.6g} kg"
        if mass_gap(mass, sections) < 0.0:
            cursor.problem(
                f"the stated mass, {mass:.6g} kg, is below {section_text}",
                "correct the mass or the section, or omit the mass: it then follows from the section",
            )
        elif has_fittings and gap != 0.0:
            cursor.problem(
                f"the fittings' {fittings:.6g} kg and {section_text} give {sections + fittings:.6g} kg, "
                f"but the stated mass is {mass:.6g} kg",
                f"the fittings must sum to {mass - sections:.6g} kg; correct them or the mass",
                "fittings" if cursor.has("fittings") else "",
            )

    # Rods

    def rod_beams(
        self,
        cursor: Cursor,
        length: Expression | None,
        telescope: Telescope | None,
        parts: tuple[SlenderPart | Inertia | None, SlenderPart | Inertia | None],
    ) -> tuple[Beam | None, Beam | None]:
        """Return the beams of a rod: the whole rod or its part at A, and its part at B.

        Args:
            cursor: the rod.
            length: length of a fixed rod; None for a telescopic rod.
            telescope: length coordinate of a telescopic rod; None for a fixed rod.
            parts: inertias of both parts as stated in the file.
        """
        model = cursor.word("model")
        is_telescopic = cursor.has("telescopic")
        links = {key: cursor.get(key) for key in ("link", "lower", "upper")}
        part_cursors = [cursor] if is_telescopic else [*links.values()]
        for part_cursor in part_cursors:
            if part_cursor is not None:
                self._reject_misplaced_keys(part_cursor, is_telescopic)
        masses = [None if part is None else part.mass for part in parts]
        beams: tuple[Beam | None, Beam | None]
        if not is_telescopic:
            is_unchecked = _is_unchecked(links["link"])
            beams = (self.beam(cursor, length, masses[0], is_unchecked=is_unchecked), None)
        else:
            beams = (
                self._part_beam(links["lower"], masses[0]),
                self._part_beam(links["upper"], masses[1]),
            )
            self._require_overlap(cursor, telescope, beams)
        present = [beam for beam in beams if beam is not None]
        if present and model == "massless":
            cursor.problem(
                "a massless rod has no section, because a section has mass",
                "write `model: slender` or `model: full`",
                "model",
            )
        if model == "slender":
            for beam in present:
                self._require_equal_bending(cursor, beam)
        return beams

    def _reject_misplaced_keys(self, cursor: Cursor, is_telescopic: bool) -> None:
        """Report keys of a beam that are at the wrong level of a rod."""
        what = "a fixed rod has its section on the rod itself"
        where = "to the rod"
        if is_telescopic:
            what = "a telescopic rod has a section for each of its parts"
            where = "to lower or upper"
        for key in (*SECTION_KEYS, "fittings", "distributed", "length"):
            if cursor.has(key) and not (is_telescopic and key == "length"):
                cursor.problem(what, f"move {key} {where}", key)

    def _part_beam(self, cursor: Cursor | None, stated_mass: Expression | None) -> Beam | None:
        """Return the beam of one part of a telescopic rod."""
        if cursor is None:
            return None
        is_elastic = cursor.has_any(SECTION_KEYS)
        if is_elastic and not cursor.has("length"):
            cursor.problem("the part has a section but no length", "add `length`", "length")
        if cursor.has("length") and not is_elastic:
            cursor.problem("`length` requires a section, but there is none", "remove it", "length")
        length = self.values.expression(cursor.get("length"))
        return self.beam(cursor, length, stated_mass, is_unchecked=_is_unchecked(cursor))

    def _require_overlap(
        self,
        cursor: Cursor,
        telescope: Telescope | None,
        beams: tuple[Beam | None, Beam | None],
    ) -> None:
        """Report parts of a telescopic rod that do not overlap at its greatest length."""
        lower, upper = beams
        if telescope is None or lower is None or upper is None:
            return
        freedom = telescope.freedom
        longest = telescope.reference
        if freedom.limit == "stop" and math.isfinite(freedom.upper):
            longest = freedom.upper
        lengths = [self.values.nominal(beam.length) for beam in (lower, upper)]
        if sum(lengths) <= longest:
            cursor.problem(
                f"the parts of {lengths[0]:.6g} m and {lengths[1]:.6g} m do not overlap at the length {longest:.6g} m",
                "correct the lengths of lower and upper, or the limits",
                "upper",
            )

    def _require_equal_bending(self, cursor: Cursor, beam: Beam) -> None:
        """Report a section of a slender rod whose two bending stiffnesses differ."""
        for section in beam.sections:
            if section.is_round:
                continue
            y, z = (self.values.nominal(x) for x in section.properties.bending_stiffness)
            if abs(y - z) > _EQUAL_BENDING * max(y, z):
                cursor.problem(
                    f"the bending stiffnesses of the section differ, {y:.6g} and {z:.6g} N m^2, but a "
                    "slender rod does not define directions across its axis",
                    "write `model: full`, which has `first_axis`, or use a round section",
                    "model",
                )

    # Bodies

    def body_beams(
        self, cursor: Cursor, body: str, points: Mapping[str, Mapping[str, Placement]]
    ) -> tuple[BodyBeam, ...] | None:
        """Return the beams of a body, or None after adding a problem.

        Args:
            cursor: the body.
            body: name of the body.
            points: placements of joints, rods and frames, by name and then by body.
        """
        results = [
            self._body_beam(name, beam_cursor, body, points)
            for name, beam_cursor in cursor.entries_of("beams")
        ]
        beams = tuple(beam for beam in results if beam is not None)
        return beams if len(beams) == len(results) else None

    def _body_beam(
        self,
        name: str,
        cursor: Cursor,
        body: str,
        points: Mapping[str, Mapping[str, Placement]],
    ) -> BodyBeam | None:
        """Return a beam of a body, or None after adding a problem."""
        ends = [read_point(cursor.get(key), self.values, body, points) for key in ("from", "to")]
        if not cursor.has_any(SECTION_KEYS):
            cursor.problem("the beam has no section", f"add one of {listing(SECTION_KEYS)}")
            return None
        if ends[0] is None or ends[1] is None:
            return None
        start, first = ends[0]
        end, last = ends[1]
        span = triple(subtract(b, a) for a, b in zip(start, end, strict=True))
        squares = add(*(multiply(component, component) for component in span))
        length = Call("sqrt", (squares,))
        if not self.values.nominal(squares) > 0.0:
            cursor.problem(
                "the length of the beam is zero: its two points coincide",
                "give two different points, or remove the beam",
                "to",
            )
            return None
        beam = self.beam(cursor, length, None)
        if beam is None:
            return None
        direction = [self.values.nominal(component) for component in span]
        z_axis = self._z_axis(cursor, beam, direction)
        if z_axis is None and not beam.is_round:
            return None
        return BodyBeam(
            name=name, start=start, end=end, z_axis=z_axis, beam=beam, interfaces=(first, last)
        )

    def _z_axis(
        self, cursor: Cursor, beam: Beam, direction: list[float]
    ) -> tuple[float, float, float] | None:
        """Return the direction of the section's z axis; None if there is none or it is invalid."""
        axis_cursor = cursor.get("z_axis")
        if axis_cursor is None:
            if not beam.is_round:
                cursor.problem(
                    "the section is not round, but its orientation is missing",
                    "add `z_axis`, the direction of its z axis in body coordinates, such as [0, 0, 1]",
                    "z_axis",
                )
            return None
        axis = read_direction(axis_cursor, self.values)
        if axis is None:
            return None
        x, y, z = axis
        dx, dy, dz = direction
        perpendicular = math.hypot(y * dz - z * dy, z * dx - x * dz, x * dy - y * dx)
        if perpendicular < _PARALLEL * math.hypot(dx, dy, dz):
            cursor.problem(
                "the z axis of the section is parallel to the beam",
                "give a direction that is not along the beam",
                "z_axis",
            )
            return None
        return axis

    # Compliances

    def compliance(self, cursor: Cursor, joint: Joint) -> Compliance | None:
        """Return the compliance of a joint; None if there is none or after adding a problem."""
        keys = [key for key in ("stiffness", "compliance") if cursor.has(key)]
        if len(keys) > 1:
            cursor.problem(
                "`stiffness` and `compliance` are both given", "keep one of them", keys[1]
            )
            return None
        entry = cursor.get(keys[0]) if keys else None
        if entry is None:
            return None
        is_matrix = isinstance(chosen(entry.kind, entry.node), ListOf)
        letters = ("x", "y", "z") if is_matrix else ("x", "y", "z", "-x", "-y", "-z")
        if any(word not in letters for word in _axis_words(cursor)):
            # the joint frames are rotated to such an axis, so they differ from the frames in the
            # file
            entry.problem(
                "stiffness by direction requires a joint whose axis is a letter",
                f"write axis: {', '.join(letters[:2])} or {letters[2]}, and rotate the frames of parent and child",
            )
            return None
        free = _free_directions(joint)
        if free is None:
            entry.problem(
                f"a {joint.kind} joint cannot have a stiffness", "add a joint for the bearing"
            )
            return None
        if not is_matrix:
            return self._compliance_by_direction(entry, free, keys[0])
        return self._compliance_matrix(entry, free, is_stiffness=keys[0] == "stiffness")

    def _compliance_by_direction(self, cursor: Cursor, free: str, key: str) -> Compliance | None:
        """Return the compliance of a joint from values by direction, or None if invalid."""
        stiffnesses: dict[str, Expression] = {}
        present = [name for name in DIRECTIONS if cursor.has(name)]
        if not present:
            cursor.problem(
                "no direction is given", f"give one or more of {listing(DIRECTIONS)}, or remove it"
            )
        for name in present:
            if name in free.split():
                cursor.problem(
                    f"the joint moves freely in {name}",
                    "remove it; use `spring` for a spring and the actuator's `stiffness` for a drive",
                    name,
                )
                continue
            value = self.values.expression(cursor.get(name))
            if value is not None:
                stiffnesses[name] = value
        if not stiffnesses:
            return None
        if key == "stiffness":
            return Compliance.per_axis(stiffnesses)
        return Compliance.diagonal([stiffnesses.get(name, ZERO) for name in DIRECTIONS])

    def _compliance_matrix(
        self, cursor: Cursor, free: str, *, is_stiffness: bool
    ) -> Compliance | None:
        """Return the compliance from a 6 x 6 matrix, or None after adding a problem."""
        rows: list[tuple[Expression, ...]] = []
        for i, row in enumerate(cursor.items()):
            entries = []
            for j, item in enumerate(row.items()):
                dimension = entry_dimension(i, j, is_stiffness=is_stiffness)
                kind = Value(linear=dimension, group=GROUP)
                entries.append(self.values.expression(replace(item, kind=kind)))
            complete_row = tuple(entry for entry in entries if entry is not None)
            if len(complete_row) < 6:
                return None
            rows.append(complete_row)
        if len(rows) < 6:
            return None
        numbers = [list(map(self.values.nominal, row)) for row in rows]
        if not self._is_possible(cursor, numbers, free):
            return None
        return Compliance(matrix=tuple(rows), is_stiffness=is_stiffness)

    def _is_possible(self, cursor: Cursor, numbers: list[list[float]], free: str) -> bool:
        """Return whether a matrix is symmetric, positive semidefinite and zero in free directions.

        Otherwise add a problem. A stiffness must be positive in all other directions.
        """
        import numpy as np

        matrix = np.array(numbers)
        scale = np.sqrt(np.abs(np.diag(matrix)))
        scale[scale == 0.0] = 1.0
        scaled = matrix / np.outer(scale, scale)
        asymmetry = np.abs(scaled - scaled.T)
        if asymmetry.max() > _ROUNDING:
            i, j = (int(k) for k in np.unravel_index(np.argmax(asymmetry), asymmetry.shape))
            cursor.problem(
                f"the matrix is not symmetric: entry ({DIRECTIONS[i]}, {DIRECTIONS[j]}) is {matrix[i, j]:.6g} "
                f"and entry ({DIRECTIONS[j]}, {DIRECTIONS[i]}) is {matrix[j, i]:.6g}",
                "correct one of them",
            )
            return False
        smallest = float(np.linalg.eigvalsh(scaled)[0])
        if smallest < -_ROUNDING:
            cursor.problem(
                f"the matrix has a negative eigenvalue, {smallest:.3g} relative to its diagonal",
                "check signs and units",
            )
            return False
        for name in free.split():
            row = np.abs(matrix[DIRECTIONS.index(name)])
            if row.max() > 0.0:
                cursor.problem(
                    f"the joint moves freely in {name}, but its row of the matrix is not zero",
                    "write zeros in its row and column",
                )
                return False
        for i, name in enumerate(DIRECTIONS):
            if (
                name not in free.split()
                and cursor.where.endswith("stiffness")
                and matrix[i, i] == 0.0
            ):
                cursor.problem(
                    f"the stiffness in {name} is zero, but the joint does not move freely in {name}",
                    "give its stiffness, or use a joint that is free in this direction",
                )
                return False
        return True

    def contact(self, cursor: Cursor) -> tuple[Expression | None, Expression | None]:
        """Return the stiffnesses of the ball joints at both ends of a rod; None if rigid."""
        contact = cursor.get("contact")
        if contact is None:
            return None, None
        start = self.values.expression(contact.get("start"))
        end = self.values.expression(contact.get("end"))
        return start, end

    def damping(self, cursor: Cursor | None) -> Damping | None:
        """Return the machine's damping; None if there is none or after adding a problem."""
        if cursor is None:
            return None
        keys = [key for key in ("ratio", "ratios", "loss_factor") if cursor.has(key)]
        if len(keys) != 1:
            cursor.problem(
                f"damping needs exactly one key, got {listing(keys) or 'none'}",
                "write `ratio`, `ratios` or `loss_factor`",
            )
            return None
        if keys[0] == "loss_factor":
            factor = self.values.expression(cursor.get("loss_factor"))
            return None if factor is None else Damping(loss_factor=factor)
        cursors = [cursor.get("ratio")] if keys[0] == "ratio" else cursor.items_of("ratios")
        expressions = [self.values.expression(item) for item in cursors]
        ratios = tuple(ratio for ratio in expressions if ratio is not None)
        return Damping(ratios=ratios) if len(ratios) == len(expressions) else None


def _is_unchecked(cursor: Cursor | None) -> bool:
    """Return whether the file states `unchecked: yes` for an inertia."""
    return cursor is not None and cursor.word("unchecked") == "yes"


def _one_section(cursor: Cursor) -> bool:
    """Return whether a mapping has exactly one section; report it otherwise."""
    keys = [key for key in SECTION_KEYS if cursor.has(key)]
    if len(keys) == 1:
        return True
    what = f"two sections are given: {listing(keys)}" if keys else "there is no section"
    cursor.problem(what, f"write one of {listing(SECTION_DIMENSIONS)}")
    return False


def _section_text(section: Section) -> str:
    material = section.material
    return section.kind if material is None else f"{section.kind} of {material.name}"


def read_point(
    cursor: Cursor | None,
    values: ValueReader,
    body: str,
    points: Mapping[str, Mapping[str, Placement]],
) -> tuple[Vector, str] | None:
    """Return a point of a body, and the name of its joint, rod or frame ("" for coordinates).

    Args:
        cursor: a name or three coordinates.
        values: reads the coordinates.
        body: name of the body.
        points: placements of joints, rods and frames, by name and then by body.

    Returns:
        The point in body coordinates and the name, or None after adding a problem.
    """
    if cursor is None:
        return None
    if cursor.text is None:
        position = values.vector(cursor)
        return None if position is None else (position, "")
    word = cursor.text
    name = next((full for full in (cursor.prefix + word, word) if full in points), None)
    if name is None:
        note_unknown(cursor, word, "joint, rod or frame", points)
        return None
    placement = points[name].get(body)
    if placement is None:
        cursor.problem(
            f"{word} is not on {body} but on {listing(points[name])}",
            "name a joint, rod or frame of this body, or give [x, y, z]",
        )
        return None
    return placement.position, name


def _axis_words(cursor: Cursor) -> list[str]:
    """Return the axes of a joint as written in the file; ``[]`` for a list of numbers."""
    cursors = [cursor.get("axis"), *cursor.items_of("axes")]
    return [item.text or "[]" for item in cursors if item is not None]


def _free_directions(joint: Joint) -> str | None:
    """Return the directions in which a joint moves, separated by spaces.

    The result is None if the directions depend on the joint's position.
    """
    kind = joint.kind
    if kind == "fixed":
        return ""
    if kind in ("spherical", "free") or JOINT_KINDS[kind].placement is not None:
        return "rx ry rz" if kind == "spherical" else None
    if kind == "prismatic":
        return joint.axes[0]
    if kind == "revolute":
        return f"r{joint.axes[0]}"
    if kind == "cylindrical":
        return f"{joint.axes[0]} r{joint.axes[0]}"
    if kind == "universal":
        return " ".join(f"r{axis}" for axis in joint.axes)
    return {"planar": "x y rz", "schoenflies": "x y z rz", "translational": "x y z"}.get(kind)
