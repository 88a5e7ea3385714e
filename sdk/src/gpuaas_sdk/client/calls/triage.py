"""Telemetry and triage. Called by telemetry.TelemetrySender and `gpuaas triage`."""

from __future__ import annotations

from ..call import call
from ..models import KeptView, TriageView
from ..request import JsonList, Request, at, get


class TriageCalls:
    @call
    def send_telemetry(
        self, project_id: str, *, lines: JsonList | None = None, spans: JsonList | None = None
    ) -> Request[KeptView]:
        """Send log lines and spans, at most 200 each. Controllers use TelemetrySender instead."""
        path = at("/v1/projects/{}/telemetry", project_id)
        body = {"lines": lines or [], "spans": spans or []}
        return Request("POST", path, KeptView, body=body, patience_s=5.0, retries=False)

    @call
    def read_triage(self, correlation_id: str) -> Request[TriageView]:
        """Get the timeline of everything that you may see under a correlation id, with a verdict and a way out."""
        return get(TriageView, "/v1/triage/{}", correlation_id)
