"""Natural frequencies, responses, position loops and stability lobes of machines."""
