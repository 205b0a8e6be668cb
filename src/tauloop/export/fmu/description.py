"""modelDescription.xml (versions 2 and 3) and buildDescription.xml (version 3) of an FMU.

Sources: Functional Mock-up Interface for Model Exchange and Co-Simulation 2.0.4, and 3.0.2,
Modelica Association.
"""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from tauloop.common.records import dataclass
from tauloop.export.fmu.variables import FmuVariable, FmuVariables
from tauloop.mechanism.description.units import parse_unit

#: SI base units of Tauloop's dimensions.
_BASE = {"mass": "kg", "length": "m", "time": "s", "angle": "rad", "temperature": "K"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuDescription:
    """Description of an FMU and its variables.

    Attributes:
        version: version of the standard, "2" or "3".
        identifier: model identifier, the name of the C file and the library.
        token: instantiation token (GUID in version 2), which ties the description to the library.
        meaning: description of the FMU.
        tool: name and version of the generation tool.
        tolerance: relative tolerance of co-simulation.
        period: sampling period, s; zero if the FMU has no sampled variables.
        hash: hash of the parameters in the library.
        variables: all variables.
    """

    version: str
    identifier: str
    token: str
    meaning: str
    tool: str
    tolerance: float
    period: float
    hash: str
    variables: FmuVariables

    def text(self) -> str:
        """Return the text of modelDescription.xml."""
        is_third = self.version == "3"
        root = ElementTree.Element("fmiModelDescription", fmiVersion="3.0" if is_third else "2.0")
        _set(
            root,
            modelName=self.identifier,
            **({"instantiationToken": self.token} if is_third else {"guid": self.token}),
            description=self.meaning or None,
            version=f"parameters {self.hash}",
            generationTool=self.tool,
            variableNamingConvention="flat",
            numberOfEventIndicators=None if is_third else str(len(self.variables.guards)),
        )
        state = {name: "true" for name in self._state_capabilities()}
        exchange = ElementTree.SubElement(
            root, "ModelExchange", {"modelIdentifier": self.identifier, **state}
        )
        self._sources(exchange)
        steps = {"canHandleVariableCommunicationStepSize": "true", **state}
        if is_third:
            steps |= {
                "providesIntermediateUpdate": "true",
                "canReturnEarlyAfterIntermediateUpdate": "true",
            }
        self._sources(
            ElementTree.SubElement(
                root, "CoSimulation", {"modelIdentifier": self.identifier, **steps}
            )
        )
        self._units(root)
        logs = ElementTree.SubElement(root, "LogCategories")
        for name, text in (
            ("logEvents", "events"),
            ("logStatusError", "reasons why calls failed"),
        ):
            ElementTree.SubElement(logs, "Category", name=name, description=text)
        experiment = {"startTime": "0", "stopTime": "1", "tolerance": repr(self.tolerance)}
        if self.period:
            experiment["stepSize"] = repr(self.period)
        ElementTree.SubElement(root, "DefaultExperiment", experiment)
        variable_list = ElementTree.SubElement(root, "ModelVariables")
        add_variable = self._add_float64 if is_third else self._add_scalar_variable
        for k, variable in enumerate(self.variables.all):
            add_variable(variable_list, k, variable)
        self._structure(root)
        return document(root)

    def _state_capabilities(self) -> tuple[str, ...]:
        """Return the capability flags of saving and restoring the FMU state."""
        word = "State" if self.version == "3" else "state"
        return (f"canGetAndSetFMU{word}", f"canSerializeFMU{word}")

    def _sources(self, interface: ElementTree.Element) -> None:
        """Add the list of C files to compile, for version 2 only."""
        if self.version == "2":
            files = ElementTree.SubElement(interface, "SourceFiles")
            ElementTree.SubElement(files, "File", name=f"{self.identifier}.c")

    def _units(self, root: ElementTree.Element) -> None:
        """Add the definitions of all units, each with its display units."""
        display_units: dict[str, dict[str, float]] = {}
        for variable in self.variables.all:
            if variable.unit != "1":
                display_units.setdefault(variable.unit, {})
                if variable.shown is not None:
                    name, scale = variable.shown
                    display_units[variable.unit][name] = scale
        definitions = ElementTree.SubElement(root, "UnitDefinitions")
        for unit in sorted(display_units):
            element = ElementTree.SubElement(definitions, "Unit", name=unit)
            dimension = parse_unit(unit).dimension
            exponents = {base: getattr(dimension, name) for name, base in _BASE.items()}
            ElementTree.SubElement(
                element, "BaseUnit", {base: str(e) for base, e in exponents.items() if e}
            )
            for name, scale in sorted(display_units[unit].items()):
                ElementTree.SubElement(element, "DisplayUnit", name=name, factor=repr(1 / scale))

    def _initial(self, variable: FmuVariable) -> tuple[str | None, float | None]:
        """Return the attribute `initial` and the start value of a variable."""
        if variable.causality in ("input", "independent"):
            return None, variable.start
        if variable.start is None:
            return "calculated", None
        return "exact", variable.start

    def _common(self, k: int, variable: FmuVariable) -> dict[str, str | None]:
        """Return the attributes of variables of any type. `k` is the value reference."""
        initial, _ = self._initial(variable)
        return {
            "name": variable.name,
            "valueReference": str(k),
            "description": variable.meaning or None,
            "causality": variable.causality,
            "variability": variable.variability,
            "initial": initial,
        }

    def _numeric(self, variable: FmuVariable) -> dict[str, str | None]:
        """Return the attributes of numbers: units, bounds, nominal value and start value."""
        bounds = {"min": variable.least, "max": variable.most}
        _, start = self._initial(variable)
        return {
            "unit": variable.unit if variable.unit != "1" else None,
            "displayUnit": variable.shown[0] if variable.shown else None,
            **{name: repr(bound) if np.isfinite(bound) else None for name, bound in bounds.items()},
            "nominal": None if variable.nominal is None else repr(variable.nominal),
            "start": None if start is None else repr(start),
        }

    def _state_of(self, k: int) -> int | None:
        """Return the value reference of the state whose derivative a variable is, or None."""
        count, first = len(self.variables.states), self.variables.first_state
        return k - count if first + count <= k < first + 2 * count else None

    def _add_scalar_variable(
        self, parent: ElementTree.Element, k: int, variable: FmuVariable
    ) -> None:
        """Add a variable in the format of version 2."""
        scalar = ElementTree.SubElement(parent, "ScalarVariable")
        state = self._state_of(k)
        _set(scalar, **self._common(k, variable))
        real = ElementTree.SubElement(scalar, "Real")
        # In version 2 a derivative refers to its state by the index in the list, counted from 1.
        _set(real, **self._numeric(variable), derivative=None if state is None else str(state + 1))

    def _add_float64(self, parent: ElementTree.Element, k: int, variable: FmuVariable) -> None:
        """Add a variable in the format of version 3."""
        state = self._state_of(k)
        attributes = self._common(k, variable) | self._numeric(variable)
        _set(
            ElementTree.SubElement(parent, "Float64"),
            **attributes,
            derivative=None if state is None else str(state),
        )

    def _structure(self, root: ElementTree.Element) -> None:
        """Add the lists of outputs, derivatives and initial unknowns."""
        structure = ElementTree.SubElement(root, "ModelStructure")
        variables = self.variables.all
        first, count = self.variables.first_state, len(self.variables.states)
        rates = range(first + count, first + 2 * count)
        guards = range(len(variables) - len(self.variables.guards), len(variables))
        outputs = [k for k, variable in enumerate(variables) if variable.causality == "output"]
        states = range(first, first + count)
        calculated = [k for k in (*states, *outputs) if variables[k].start is None]
        unknowns = sorted({*calculated, *rates})
        if self.version == "3":
            for name, references in (
                ("Output", outputs),
                ("ContinuousStateDerivative", rates),
                ("InitialUnknown", unknowns),
                ("EventIndicator", guards),
            ):
                for k in references:
                    ElementTree.SubElement(structure, name, valueReference=str(k))
            return
        for name, references in (
            ("Outputs", outputs),
            ("Derivatives", rates),
            ("InitialUnknowns", unknowns),
        ):
            if references:
                group = ElementTree.SubElement(structure, name)
                for k in references:
                    ElementTree.SubElement(group, "Unknown", index=str(k + 1))


def build_description(identifier: str) -> str:
    """Return the text of buildDescription.xml: one C file and the mathematical library."""
    root = ElementTree.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = ElementTree.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ElementTree.SubElement(configuration, "SourceFileSet", language="C99")
    ElementTree.SubElement(files, "SourceFile", name=f"{identifier}.c")
    ElementTree.SubElement(configuration, "Library", name="m", external="true")
    return document(root)


def document(root: ElementTree.Element) -> str:
    """Return the text of an XML document."""
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def _set(element: ElementTree.Element, **attributes: str | None) -> None:
    """Set the attributes that are not None."""
    for name, value in attributes.items():
        if value is not None:
            element.set(name, value)
