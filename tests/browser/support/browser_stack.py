"""What the browser looks at: a served core with the built console, the demo tenant, machines, and a second app at work."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuaas_lab.stack.credentials import ADMIN, BOSS, USER
from gpuaas_lab.stack.platform import Stack
from gpuaas_lab.stack.seed import Demo, entitle, seed

from tests.browser.support import notebooks
from tests.browser.support.fake_nodes import Fleet

MACHINES = {
    "gpu-a1": "research",
    "gpu-a2": "research",
    "gpu-a3": "research",
    "gpu-b1": "research",
    "gpu-c1": "training",
}
SPARE = "gpu-d1"


@dataclass
class Scene:
    stack: Stack
    demo: Demo
    fleet: Fleet
    people: dict[str, tuple[str, str]] = field(default_factory=dict)  # whom a test has brought along

    @property
    def url(self) -> str:
        return self.stack.api

    @property
    def research(self) -> str:
        return self.demo.projects["research"]

    def page(self, rest: str) -> str:
        return f"{self.url}/projects/{self.research}/{rest}"

    def person(self, name: str) -> tuple[str, str]:
        known = self.stack.credentials
        people = self.people | {"dana": (BOSS, known.tenant_admin_password), "sam": (USER, known.user_password)}
        return (people | {"admin": (ADMIN, known.admin_password)})[name]

    def stop_core(self) -> None:
        self.stack.folder.unwant("core")

    def start_core(self) -> None:
        self.stack.run_core()
        self.stack.wait_ready()


@contextlib.contextmanager
def scene(root: Path, port: int, *, speed: float = 0.05) -> Iterator[Scene]:
    stack = Stack(root, port)
    fleet = controller = None
    try:
        stack.start_core()
        demo = seed(stack.api, stack.credentials, stack.identities, stack.api)
        _publish(demo)
        fleet = Fleet(stack.api, demo)
        for name, project in MACHINES.items():
            fleet.add(name, project)
        fleet.add(SPARE)
        argv = [sys.executable, notebooks.__file__, str(demo.identities["research"]), str(speed)]
        with (root / "notebooks.log").open("ab") as log:
            controller = subprocess.Popen(argv, stdout=log, stderr=log)
        yield Scene(stack, demo, fleet)
        demo.close()
    finally:
        if controller:
            controller.kill()
            controller.wait()
        if fleet:
            fleet.close()
        stack.stop()


def _publish(demo: Demo) -> None:
    """The app that research may use, and an app without entitlements."""
    other = {"app_slug": "renderer", "title": "Renderer", "summary": "Frames from scenes, on every GPU there is."}
    for manifest in (notebooks.MANIFEST, notebooks.MANIFEST | other):
        slug = manifest["app_slug"]
        demo.admin.create_app(slug=slug, name=manifest["title"], description=manifest["summary"])
        demo.admin.create_version(slug, version=notebooks.VERSION, manifest=manifest)
        demo.admin.publish_version(slug, notebooks.VERSION)
    entitle(demo, notebooks.SLUG)
