"""The well-known parts of `adapter_detail`, published as contracts/adapter-detail.schema.json.

Apps may put anything into `adapter_detail`. The parts below have the same meaning in every app, and the console and the
CLI show them. All are optional, and everything else is opaque. The platform validates none of them: a part of another
shape is stored but not shown.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..kit.json_types import Json


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow")


class Check(_Part):
    """A check of a machine or service, and its result."""

    check: str | None = Field(None, description="Its short name, e.g. `ports_free`.")
    ok: bool | None = Field(None, description="Whether it passed.")
    sentence: str | None = Field(None, description="What was found, as a sentence.")


class HostChecks(_Part):
    host: str | None = Field(None, description="The machine.")
    checks: list[Check] | None = None


class Unit(_Part):
    """A service as systemd reports it."""

    unit: str | None = Field(None, description="e.g. `sshd.service`")
    active: str | None = Field(None, description="`active`, `inactive`, `failed`, …")
    sub: str | None = None
    result: str | None = None


class Drift(_Part):
    """One difference between what the platform set up and what was found."""

    what: str | None = Field(None, description="The thing that differs, e.g. a file.")
    where: str | None = Field(None, description="The machine.")
    kind: str | None = Field(None, description="Who changed it, as far as that can be seen.")
    said: str | None = Field(None, description="The difference, as a sentence.")
    revert: str | None = Field(None, description="How to undo the change.")
    adopt: str | None = Field(None, description="How to keep the change.")


class Forecast(_Part):
    """What a draining member still waits for."""

    free_at: str | None = Field(None, description="When it is free at the latest; null: no job has a time limit.")
    jobs: list[dict[str, Any]] | None = Field(None, description="What still runs, one row each.")
    jobs_total: int | None = Field(None, description="How many there are, when `jobs` is cut short.")
    deadline_at: str | None = Field(None, description="When the drain gives up, if it does.")
    at_deadline: str | None = Field(
        None, description="`requeue`: jobs are requeued then; otherwise the member is kept."
    )


class Failure(_Part):
    """Diagnostics of a failed operation."""

    step: str | None = Field(None, description="The step it failed at.")
    host: str | None = Field(None, description="The machine it failed on.")
    output: str | None = Field(None, description="What the failed command printed.")
    log: list[str] | None = Field(None, description="The last lines of the service's log.")
    units: list[Unit] | None = None
    checks: list[Check] | None = None
    preflight: list[HostChecks] | None = Field(None, description="The checks made before anything was changed.")


class LastFailure(Failure):
    operation_id: str | None = Field(None, description="The operation that failed.")


class AdapterDetail(Failure):
    """Optional well-known parts of `adapter_detail`; everything else is opaque."""

    drift: list[Drift] | None = Field(None, description="Of an instance: unexpected changes.")
    forecast: Forecast | None = Field(None, description="Of a member or its drain: what it waits for.")
    last_failure: LastFailure | None = Field(
        None, description="Of an operation that was not tried: the failure before."
    )


def schema() -> Json:
    document = AdapterDetail.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | document
