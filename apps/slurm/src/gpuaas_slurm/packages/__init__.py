"""The pinned set of Debian packages a host without internet gets: built by the operator, installed by a step."""
