"""The element ``<gazebo>`` of a URDF: changes of links and joints, and joints that close loops."""
