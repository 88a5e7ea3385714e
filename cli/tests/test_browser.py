"""Signing in with a browser: the code comes back to this machine, and only with its verifier is it of use."""

from __future__ import annotations

import base64
import hashlib
import threading
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
from gpuaas_cli import browser


def test_the_browser_brings_the_code_back_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_browser(address: str) -> None:
        opened.append(address)
        port = parse_qs(urlsplit(address).query)["port"][0]
        visit = f"http://127.0.0.1:{port}/?code=brought-back"
        threading.Thread(target=lambda: urllib.request.urlopen(visit, timeout=10).read()).start()

    monkeypatch.setattr(browser.webbrowser, "open", open_browser)
    code, verifier = browser.sign_in("https://gpu.example", "idp_1", paste=False)
    assert code == "brought-back"
    assert opened[0].startswith("https://gpu.example/v1/auth/oidc/idp_1/start?challenge=")
    sent = parse_qs(urlsplit(opened[0]).query)["challenge"][0]
    assert sent == base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    assert verifier not in opened[0]


def test_a_code_can_be_pasted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin.readline", lambda: "pasted\n", raising=False)
    code, _ = browser.sign_in("https://gpu.example", "idp_1", paste=True)
    assert code == "pasted"
    assert "port=" not in capsys.readouterr().err
