from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpuaas_sdk import Bearer, Client
from gpuaas_sdk.client.backoff import Backoff

from sdk.tests.support.fake_platform import Platform


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
