"""A request reaches the route that the framework would have found, and a read verifies its caller before it answers."""

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Response
from fastapi.routing import APIRoute
from gpuaas_core.api.app import build_app
from gpuaas_core.http.call import needs
from gpuaas_core.http.routing import Dispatch, Reader, Route
from starlette.routing import Match

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import World

pytestmark = pytest.mark.any_store
WORDS = ("x", "claim", "drain", "instances", "members", "operations", "v1")


def asked(path: str, method: str) -> dict[str, object]:
    return {"type": "http", "path": path, "method": method, "root_path": ""}


def by_search(app: FastAPI, path: str, method: str) -> APIRoute | None:
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    return next((one for one in routes if one.matches(asked(path, method))[0] is Match.FULL), None)


def test_every_path_finds_the_route_that_was_declared_first(world: World) -> None:
    """Also where a word of one route could be the id of another."""
    app = build_app(world.platform, loops=False)
    found = Dispatch(app.router)
    compared = 0
    for route in app.routes:
        assert isinstance(route, APIRoute)
        for word in WORDS:
            path = "/".join(word if part.startswith("{") else part for part in route.path.split("/"))
            for method in ("GET", "POST", "PUT", "DELETE"):
                assert found.route_of(asked(path, method)) is by_search(app, path, method), (method, path)
                compared += 1
    assert compared > 1000


@pytest.mark.parametrize("path", ["", "/", "//", "/v2", "/v1/", "/v1/projects//instances", "/v1/projects/x/instances/"])
def test_a_path_without_a_route_finds_none(world: World, path: str) -> None:
    app = build_app(world.platform, loops=False)
    assert Dispatch(app.router).route_of(asked(path, "GET")) is None


async def test_the_caller_is_verified_before_wrong_parameters_are_reported(world: World) -> None:
    path = f"/v1/projects/{world.red}/instances/{(await world.running())['id']}"
    check_problem(await world.boss.get(f"{path}?members=-1"), 422, "invalid_request")
    check_problem(await world.api.as_("gpt_unknown").get(f"{path}?members=-1"), 401, "unauthenticated")
    check_problem(await world.api.as_(None).get(path), 401, "unauthenticated")


async def test_a_handler_that_answers_without_a_read_fails(world: World) -> None:
    """Its caller would not have been verified."""
    router = APIRouter(route_class=Route)

    @router.get("/v1/projects/{project_id}/careless", **needs("apps.instance.read", "project"))
    async def careless(call: Reader, project_id: str) -> Response:
        return Response("secret")

    app = build_app(world.platform, loops=False)
    app.router.routes.extend(router.routes)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app, raise_app_exceptions=False), base_url="http://core"
    ) as http:
        answer = await http.get(f"/v1/projects/{world.red}/careless")
    assert answer.status_code == 500
    assert "secret" not in answer.text


BODIES = ["", "{", "[]", "null", '{"a": 1, "a": 2}', '{"unknown": true}', "[" * 5000, '{"name": NaN}', "\ud800", "\0"]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("path", ["instances", "operations/claim", "operations/op_x/complete", "instances/inst_x/stop"])
async def test_a_body_is_refused_as_the_framework_refuses_it(world: World, path: str, body: str) -> None:
    """A body with a parameter in its content type goes through the framework; without, the handler is called directly."""
    content = body.encode("utf-8", "surrogatepass")
    for caller in (world.boss, world.controller, world.api.as_("gpt_unknown"), world.api.as_(None)):
        answers = [
            await caller.call(
                "POST", f"/v1/projects/{world.red}/{path}", content=content, headers={"Content-Type": content_type}
            )
            for content_type in ("application/json", "application/json; charset=utf-8")
        ]
        direct, framework = [_without_ids(answer) for answer in answers]
        assert direct == framework


def _without_ids(answer: httpx2.Response) -> tuple[int, dict[str, object]]:
    return answer.status_code, {
        name: value for name, value in answer.json().items() if name not in ("correlation_id", "trace_id", "instance")
    }


async def test_handlers_of_writes_are_called_directly(world: World) -> None:
    app = build_app(world.platform, loops=False)
    direct = {route.path for route in app.routes if isinstance(route, Route) and route.takes_json}
    operations = "/v1/projects/{project_id}/operations"
    assert {f"{operations}/claim", f"{operations}/{{operation_id}}/complete"} <= direct
    assert "/v1/projects/{project_id}/instances" in direct
    assert "/v1/projects/{project_id}/instances/{instance_id}/update" not in direct, "it reads a header"


def test_a_reader_with_a_body_is_no_read() -> None:
    router = APIRouter(route_class=Route)

    async def wrong(call: Reader, body: dict[str, str]) -> Response:
        return Response()

    with pytest.raises(TypeError, match="is no read"):
        router.get("/v1/wrong")(wrong)
