"""A mechanism as a graph of links, and at nominal parameters as a tree of rigid links with closures."""
