"""Apps, their versions and manifests, and the entitlements of projects to deploy them."""
