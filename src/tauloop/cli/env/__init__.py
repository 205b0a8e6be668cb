"""Commands on this computer."""
