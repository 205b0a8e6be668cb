"""Tables of elastic machines."""
