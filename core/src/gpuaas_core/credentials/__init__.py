"""Access credentials of a project and runtime secrets of its instances: stored sealed, delivered to the holder of a
claim."""
