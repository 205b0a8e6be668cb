"""Parts of a machine as parts of a structure; must not import a finished structure."""
