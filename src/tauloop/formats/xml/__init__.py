"""XML files: safe reading, includes, xacro, meshes, and the table of foreign elements."""
