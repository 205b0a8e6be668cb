"""Models of machines for engines: trees of rigid links, and constraints that close loops."""
