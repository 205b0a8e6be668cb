"""Description of a machine: coordinates, loops, actuators, drive lines, parameters, solution."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import field
from typing import Any, ClassVar

from tauloop.common.datasets import Tabular, tabulated
from tauloop.common.errors import PoseError, TauloopError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.compiler.catalogue import FORWARD_DYNAMICS, INVERSE_DYNAMICS
from tauloop.compiler.program import LinearBlock
from tauloop.kinematics.inspection import Inspection, check
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.drive_line import DriveLine, DualDrive, ElasticBacklash, ExactBacklash
from tauloop.mechanism.model import Actuator, Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions(Options):
    """Optional parts of the description of a machine.

    Attributes:
        table: list all independent parameters with their values and sources.
        blocks: list the blocks into which the equations are sorted, and how each is solved.

    Examples:
        >>> import tauloop as tl
        >>> described = tl.describe("delta", blocks=True)
        >>> sorted({function for function, _ in described.linear_blocks()})
        ['forward dynamics', 'inverse dynamics']
    """

    table: bool = option(False)
    blocks: bool = option(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Tabular):
    """Description of a machine.

    Attributes:
        inspection: result of the machine's check.
        options: optional parts that were requested.
    """

    needs_forces: ClassVar[bool] = False
    inspection: Inspection = field(
        metadata=json_keys(
            assembly="model.assembly",
            name="model.mechanism.name",
            description="model.mechanism.description",
        )
        | tabulated("model.mechanism.parameters")
    )
    options: DescribeOptions = field(metadata=OMITTED)

    @property
    def model(self) -> Model:
        """The machine."""
        return self.inspection.model

    @property
    def status(self) -> Status:
        """OK; `check` reports the faults of a machine."""
        return Status.OK

    @property
    @in_json()
    def actuators(self) -> list[dict[str, Any]]:
        """For each actuator, the coordinates that it drives with ratios, and its drive line."""
        return [self._actuator(actuator) for actuator in self.model.mechanism.actuators]

    def _actuator(self, actuator: Actuator) -> dict[str, Any]:
        mechanism = self.model.mechanism
        row: dict[str, Any] = {
            "name": actuator.name,
            "drives": {name: mechanism.value(ratio) for name, ratio in actuator.drives},
        }
        if offset := mechanism.value(actuator.offset):
            row["offset"] = offset
        if actuator.drive is not None:
            row["drive_line"] = drive_line_properties(mechanism, actuator.drive)
        return row

    @property
    @in_json("element_masses", optional=True)
    def mass_rows(self) -> list[dict[str, Any]] | None:
        """See `Inspection.mass_rows`."""
        return self.inspection.mass_rows

    @property
    @in_json(nullable=True)
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters of the file with values and bounds, SI."""
        names = ("name", "value", "group", "status", "source", "lower", "upper")
        entries = []
        for parameter in self.model.mechanism.parameters:
            entry = {name: getattr(parameter, name) for name in names}
            entry |= {"unit": si_unit(parameter.unit), "written_unit": parameter.unit}
            entries.append(entry)
        return entries

    @property
    @in_json()
    def dynamic_parameters(self) -> list[dict[str, Any]]:
        """The parameters of the dynamics with their values."""
        parameters = self.model.parameters
        return records(
            name=[parameter.name for parameter in parameters],
            unit=[parameter.unit for parameter in parameters],
            value=self.model.pi,
        )

    @property
    @in_json()
    def blocks(self) -> list[dict[str, Any]]:
        """Blocks of the position problem; empty if the machine has problems (see `check`)."""
        blocks = () if self.model.assembly.findings else self.model.platform.blocks
        return records(
            equations=[block.equations for block in blocks],
            unknowns=[block.unknowns for block in blocks],
            method=[block.method for block in blocks],
        )

    @property
    @in_json("linear_blocks", optional=True)
    def linear_block_rows(self) -> list[dict[str, object]] | None:
        """See `linear_blocks`; None if not requested, or if the machine has problems."""
        if not self.options.blocks or self.model.assembly.findings:
            return None
        return self._linear_list()

    def _linear_list(self) -> list[dict[str, object]]:
        return [
            {
                "function": function,
                "for": block.what,
                "size": block.size,
                "method": block.method,
                "count": count,
            }
            for (function, block), count in self.linear_blocks().items()
        ]

    def linear_blocks(self) -> Counter[tuple[str, LinearBlock]]:
        """Return the number of linear blocks of each kind in each function of the dynamics.

        Machines with redundant actuators or passive degrees of freedom may lack some functions.
        """
        counts: Counter[tuple[str, LinearBlock]] = Counter()
        for spec in (INVERSE_DYNAMICS, FORWARD_DYNAMICS):
            with suppress(TauloopError):
                blocks = self.model.platform.program(spec).linear_blocks
                counts.update((spec.name.replace("_", " "), block) for block in blocks)
        return counts


def drive_line_properties(mechanism: Mechanism, line: DriveLine) -> dict[str, Any]:
    """Return the properties of the drive line of an actuator, SI.

    The entry "reflected" is the inertia of all parts reflected to the actuator, and "play" contains
    the backlash of each connection.
    """
    value = mechanism.value
    ratios = line.ratios()
    drive_control = line.control.drive
    backlash_types = (ElasticBacklash, ExactBacklash)
    sample_time = line.control.sample_time
    return {
        "load": line.performance.of,
        "motors": [motor.name for motor in line.motors],
        "slave": drive_control.slave if isinstance(drive_control, DualDrive) else None,
        "inertias": [
            {
                "name": i.name,
                "value": value(i.value),
                "is_rotary": i.is_rotary,
                "ratio": value(ratios[i.name]),
            }
            for i in line.inertias
            if i.name != line.performance.of
        ],
        "reflected": sum(value(i.value) * value(ratios[i.name]) ** 2 for i in line.inertias),
        "play": {
            c.name: value(c.compliance.gap)
            for c in line.connections
            if isinstance(c.compliance, backlash_types)
        },
        "sample_time": None if sample_time is None else value(sample_time),
    }


@keywords(DescribeOptions)
@solving(PoseError)
def describe(machine: MachineSource, options: DescribeOptions | None = None) -> Description:
    """Return the description of a machine.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: optional parts.

    Raises:
        AssemblyError: the loops do not close.

    Examples:
        >>> import tauloop as tl
        >>> table = tl.describe(tl.load("delta")).to_pandas()
        >>> float(table.loc["arm_length", "value"]), table.loc["arm_length", "parameter_unit"]
        (0.26, 'm')
    """
    return Description(inspection=check(machine), options=options or DescribeOptions())
