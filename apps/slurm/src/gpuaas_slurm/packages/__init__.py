"""The package set: pinned Debian packages for hosts without internet, built by an operator and installed by a step."""
