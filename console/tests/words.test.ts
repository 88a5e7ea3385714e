import { describe, expect, test } from "vitest";
import { instanceOffers, memberOffers } from "../src/actions/offers";
import { csrfToken } from "../src/api/csrf";
import { STATES } from "../src/api/facts.gen";
import { wayOutOf } from "../src/api/waysOut";
import type { Manifest } from "../src/catalog/manifest";
import { hostsOf, type Member, machineBlocks } from "../src/instances/members";
import { type PlatformEvent, stepsOf } from "../src/operations/kinds";
import { displayName, roleName } from "../src/parts/names";
import { ago, lasted } from "../src/parts/time";
import { hasTone, toneOf } from "../src/parts/tone";
import { leastRole } from "../src/session/grants";

const manifest = {
  components: [{ key: "hub", title: "Hub" }],
  topologies: [{ key: "apart", title: "", components: { hub: { min: 1, max: 1 }, runner: { min: 1, max: 8 } } }],
  actions: [
    { key: "add_runner", title: "Add runners", target: "instance" },
    { key: "drain", title: "Empty it", target: "member" },
  ],
} as unknown as Manifest;

describe("actions", () => {
  const possible = (...keys: string[]) => keys.map((action) => ({ action, allowed: false, reason: "Not now." }));

  test("have the app's own words, and what the app does not offer is not shown", () => {
    const offers = instanceOffers(possible("stop", "add_runner", "add_hub", "decommission"), manifest);
    expect(offers.map((one) => one.title)).toEqual(["Add runners", "Decommission"]);
    expect(memberOffers(possible("drain", "undrain"), manifest).map((one) => one.title)).toEqual(["Empty it"]);
  });

  test("of members offer the way out of a dead machine where members can leave at all", () => {
    const leaving = { ...manifest, actions: [{ key: "remove", title: "Remove", target: "member" }] } as Manifest;
    const offered = memberOffers(possible("remove"), leaving).map(({ key, allowed, danger }) => [key, allowed, danger]);
    expect(offered).toEqual([
      ["remove", false, true],
      ["gone", true, true],
    ]);
  });

  test("keep the platform's reason", () => {
    expect(instanceOffers(possible("add_runner"), manifest)[0]?.reason).toBe("Not now.");
  });
});

describe("steps", () => {
  const told = (second: number, message: string, type = "apps.operation.progressed") =>
    ({
      type,
      time: `2026-01-01T00:00:0${second}Z`,
      data: { message, phase: "work", step: 1 },
    }) as unknown as PlatformEvent;

  test("are the sentences in their order, each until the next, the last until the end", () => {
    const steps = stepsOf(
      [told(0, "waits", "apps.operation.queued"), told(1, "one"), told(2, "one"), told(4, "two")],
      "2026-01-01T00:00:09Z",
    );
    expect(steps.map((step) => [step.title, step.at.slice(17, 19), step.until?.slice(17, 19)])).toEqual([
      ["one", "01", "04"],
      ["two", "04", "09"],
    ]);
  });
});

describe("members on machines", () => {
  const member = (component_key: string, allocation_id: string, ordinal = 0) =>
    ({ id: allocation_id, component_key, ordinal, allocation_id, node_name: allocation_id, address: "" }) as Member;

  test("have the name that the CLI takes", () => {
    const [first] = machineBlocks([member("runner", "a", 3)], "apart", manifest);
    expect(first?.lines.map((line) => line.text)).toEqual(["runner/3"]);
  });

  test("the machine everything hangs on comes first", () => {
    const hosts = hostsOf([member("runner", "a"), member("runner", "b"), member("hub", "z")], "apart", manifest);
    expect(hosts.map((host) => [host.name, host.hub])).toEqual([
      ["z", true],
      ["a", false],
      ["b", false],
    ]);
  });
});

test("an operation that runs is on its way, an instance that runs has arrived", () => {
  expect([toneOf("running"), toneOf("running", "operation"), toneOf("never heard of")]).toEqual([
    "good",
    "busy",
    "still",
  ]);
});

test("keys have display names, and a tenant's own role keeps its name", () => {
  expect(["needs_attention", "cpus", "memory_mb", "gpu_uuid", "multi_node", "add_member"].map(displayName)).toEqual([
    "Needs attention",
    "CPUs",
    "Memory (MB)",
    "GPU UUID",
    "Multi-node",
    "Add member",
  ]);
  expect([roleName("tenant_admin"), roleName("night-shift")]).toEqual(["Tenant admin", "night-shift"]);
});

test("every state of every lifecycle has a tone on purpose", () => {
  const missing = Object.entries(STATES).flatMap(([kind, { live, terminal }]) =>
    [...live, ...terminal].filter((state) => !hasTone(state)).map((state) => `${kind}: ${state}`),
  );
  expect(missing).toEqual([]);
});

test("a missing permission names the smallest role that has it", () => {
  expect(
    ["apps.instance.read", "apps.instance.operate", "tenancy.user.create", "platform.tenant.create"].map(leastRole),
  ).toEqual(["project_viewer", "project_admin", "tenant_admin", "platform_admin"]);
  expect(leastRole("no.such.permission")).toBeUndefined();
});

test("moments and durations read like speech", () => {
  const at = "2026-01-01T12:00:00Z";
  expect(ago(at, Date.parse(at) + 2000)).toBe("just now");
  expect(ago(at, Date.parse(at) + 3 * 60_000)).toBe("3 minutes ago");
  expect(ago(at, Date.parse(at) - 2 * 86_400_000)).toBe("in 2 days");
  expect([lasted(at, "2026-01-01T12:00:01.5Z"), lasted(at, "2026-01-01T12:02:05Z")]).toEqual(["1.5 s", "2 min 5 s"]);
});

test("what to do about an error names no command and no field of the API", () => {
  expect(wayOutOf("sign_in_refused", "Check both, with `tenant` too.")).toBe(
    "Check your e-mail address and password and try again.",
  );
  expect(wayOutOf("not_listed", "Wait for its end (`gpuaas task list NODE`); then read `detail`.")).toBe(
    "Wait for its end; then read detail.",
  );
});

test("the CSRF token is read from either cookie, and from no other", () => {
  expect(csrfToken("a=b; gpuaas-csrf=x%2By; c=d")).toBe("x+y");
  expect(csrfToken("__Host-gpuaas-csrf=abc")).toBe("abc");
  expect(csrfToken("not-gpuaas-csrf=abc; gpuaas-csrf=")).toBeNull();
});
