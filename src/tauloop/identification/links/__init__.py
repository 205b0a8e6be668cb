"""Parameters of links that follow from base parameters."""
