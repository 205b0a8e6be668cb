"""Loop equations that are solved without iteration."""
