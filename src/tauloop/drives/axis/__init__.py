"""Single drive lines: steps of the reference, criteria, sensitivities and limit cycles."""
