"""Drive lines of their own: steps of the reference, criteria, sensitivities, limit cycles."""
