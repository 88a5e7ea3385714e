"""Lets Python collect garbage rarely in every test process.

A collection visits all objects, and an imported platform is half a million of them that live to the end. In the tests
of `iam` and `tenancy`, which make many objects, that was a tenth of the CPU time; in all of `make test` far less.
"""

import gc

import pytest

gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
