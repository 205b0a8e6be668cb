"""XML files: safe reading, includes, xacro, meshes, and a table of elements of other formats."""
