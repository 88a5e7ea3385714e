from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside the tests, whatever pytest's import mode

from fake_platform import Platform
from gpuaas_sdk import Bearer, Client
from gpuaas_sdk.client.backoff import Backoff


@pytest.fixture
def platform() -> Iterator[Platform]:
    server = Platform()
    yield server
    server.close()


@pytest.fixture
def client(platform: Platform) -> Iterator[Client]:
    with Client(platform.url, Bearer("tok")) as client:
        yield client


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "next", _short)


def _short(self: Backoff) -> float:
    self.tries += 1
    return 0.01
