"""A network namespace for an app controller: on the bridge, no default route.

The test "an app controller needs only the public API and its hosts" runs the controller in it.
"""

from dataclasses import dataclass

from gpuaas_lab import network
from gpuaas_lab.plan import FIRST_CONTROLLER, FIRST_HOST, free_number, namespace, valid_name
from gpuaas_lab.state import State


@dataclass(frozen=True)
class ControllerNamespace:
    """A network namespace. Run a program in it with `[*space.prefix, "program", ...]`."""

    name: str
    address: str
    gateway: str

    @property
    def prefix(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]


def ensure(state: State, name: str) -> ControllerNamespace:
    """Create the namespace unless it exists. It is recorded first, so that `down` removes it."""
    short = valid_name("controller", name.removeprefix("gpuaas-"))
    record = state.load_lab()
    assert record is not None
    if short not in record.controllers:
        taken = record.controllers.values()
        record.controllers[short] = free_number(taken, FIRST_CONTROLLER, FIRST_HOST - 1)
        state.save_lab(record)
    number = record.controllers[short]
    network.plug_in(record.plan, short, number)
    return ControllerNamespace(namespace(state.lab, short), str(record.plan.address(number)), str(record.plan.gateway))
