"""The command line's frame: commands, exit codes, and how errors reach the user.

Exit codes: 0 all is well; 1 the command ran and found something wrong (a failed check, a doubtful result); 2 the input
cannot be used.
"""

from __future__ import annotations

import typer

from tauloop.cli import describe, dynamics, identify, verify

app = typer.Typer(
    name="tauloop",
    help="Parallel robots: one description of a machine gives its kinematics, dynamics and identification.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("machines")(describe.machines)
app.command("show")(describe.show)
app.command("check")(describe.check)
app.command("schema")(describe.schema)
app.command("verify")(verify.verify)
app.command("dynamics")(dynamics.dynamics)
app.command("identify")(identify.identify)


def main() -> None:
    """Run the command line."""
    app()
