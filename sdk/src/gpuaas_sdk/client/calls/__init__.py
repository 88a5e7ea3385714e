"""Every call of the API, described once. `Client` and `AsyncClient` inherit the calls and differ only in how they wait.

One file per area of the API; tests/test_contract.py compares each call with contracts/openapi.json.
"""

from .access import AccessCalls
from .artifacts import ArtifactCalls
from .capacity import CapacityCalls
from .catalog import CatalogCalls
from .controller import ControllerCalls
from .credentials import CredentialCalls
from .events import EventCalls
from .identity import IdentityCalls
from .instances import InstanceCalls
from .machine_access import MachineAccessCalls
from .members import MemberCalls
from .offers import OfferCalls
from .policy import PolicyCalls
from .secrets import SecretCalls
from .tasks import TaskCalls
from .tenancy import TenancyCalls
from .triage import TriageCalls


class Calls(
    IdentityCalls,
    TenancyCalls,
    AccessCalls,
    CatalogCalls,
    PolicyCalls,
    CapacityCalls,
    OfferCalls,
    ArtifactCalls,
    InstanceCalls,
    MemberCalls,
    SecretCalls,
    CredentialCalls,
    MachineAccessCalls,
    ControllerCalls,
    TaskCalls,
    EventCalls,
    TriageCalls,
):
    """All calls of the API."""


__all__ = ["Calls"]
