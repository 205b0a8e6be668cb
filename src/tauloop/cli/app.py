"""The command line's frame: its commands, each imported only when it is called.

Exit codes: 0 all is well; 1 the command ran and found something wrong (a failed check, a doubtful result); 2 the input
cannot be used.
"""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup

#: Commands in the order of the help, and the module that holds each.
COMMANDS = {
    "machines": "describe",
    "show": "describe",
    "check": "describe",
    "verify": "verify",
    "view": "view",
    "modes": "modes",
    "workspace": "workspace",
    "dynamics": "dynamics",
    "motion": "motion",
    "simulate": "simulate",
    "control": "control",
    "cost": "cost",
    "reduce": "reduce",
    "export": "export",
    "convert": "convert",
    "excite": "excite",
    "subtract": "subtract",
    "identify": "identify",
    "calibrate": "calibrate",
    "poses": "poses",
    "drive": "drive",
    "ballbar": "drive_machine",
    "play": "drive_machine",
    "reproduce": "reproduce",
    "schema": "describe",
}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are asked for: figures and data frames are slow to import."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tauloop.cli.{COMMANDS[cmd_name]}")
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(getattr(module, cmd_name))
        return typer.main.get_command(single)


app = typer.Typer(
    cls=LazyGroup,
    name="tauloop",
    help="Parallel robots: one description of a machine gives its kinematics, dynamics, simulation and identification.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _frame() -> None:
    """Make a group of the commands above."""


def main() -> None:
    """Run the command line."""
    app()
