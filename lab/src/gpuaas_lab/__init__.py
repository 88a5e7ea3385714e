"""The lab: real hosts on one Linux machine, for `make up` and for tests that break hosts."""

__version__ = "0.1.0"
