import { describe, expect, test } from "vitest";
import { affectedBy } from "../src/live/affected";
import { SseReader } from "../src/live/sse";

describe("a stream of events", () => {
  test("gives an event only once it is complete, however it was cut on the way", () => {
    const reader = new SseReader();
    expect(reader.feed("retry: 1000\n\nid: e.1\nevent: apps.x\nda")).toEqual([]);
    expect(reader.feed('ta: {"a":1}\n')).toEqual([]);
    expect(reader.feed("\nid: e.2\ndata: {}\n\n")).toEqual([
      { id: "e.1", data: '{"a":1}' },
      { id: "e.2", data: "{}" },
    ]);
  });

  test("does not take a ping for an event", () => {
    expect(new SseReader().feed(": at 17\n\n")).toEqual([]);
  });

  test("refreshes what it is about, and always the list of events", () => {
    expect(affectedBy("apps.operation.progressed")).toContain("/v1/projects/{project_id}/operations/{operation_id}");
    expect(affectedBy("capacity.node.lost")).toContain("/v1/projects/{project_id}/allocations");
    expect(affectedBy("tenancy.invitation.accepted")).toContain("/v1/tenants/{tenant_id}/users");
    for (const paths of [affectedBy("apps.member.added"), affectedBy("something.new.happened")])
      expect(paths).toContain("/v1/projects/{project_id}/events");
  });

  test("of another project refreshes what is read from the tenant only", () => {
    expect(affectedBy("capacity.allocation.released", true)).toEqual([
      "/v1/tenants/{tenant_id}/allocations",
      "/v1/tenants/{tenant_id}/events",
      "/v1/nodes/{node_id}",
      "/v1/tenants/{tenant_id}/nodes",
    ]);
  });
});
