"""Apps, their published versions and manifests, and which project may deploy what."""
