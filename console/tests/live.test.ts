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

  test("makes old what it is about, and always the list of events", () => {
    expect(affectedBy("apps.operation.progressed")).toContain("/operations");
    expect(affectedBy("capacity.node.lost")).toContain("/allocations");
    expect(affectedBy("something.new.happened")).toEqual(["/events"]);
  });
});
