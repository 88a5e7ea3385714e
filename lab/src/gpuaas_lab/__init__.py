"""The lab: real hosts on one Linux machine, for `make up` and for every test that needs a host to break."""

__version__ = "0.1.0"
