import { describe, expect, test } from "vitest";
import type { Manifest, Topology } from "../src/catalog/manifest";
import { howMany, missing, takenBy } from "../src/deploy/draft";
import { type Allocation, inOrder, whyNot } from "../src/deploy/machines";
import { check } from "../src/deploy/schema";

const manifest = {
  app_slug: "farm",
  runtime_backend: "bare_metal",
  components: [
    { key: "head", title: "Head" },
    { key: "hand", title: "Hand" },
  ],
  topologies: [{ key: "wide", title: "Wide", components: { head: { min: 1, max: 1 }, hand: { min: 2, max: 4 } } }],
  inputs_schema: { type: "object", required: ["colour"], properties: { colour: { type: "string", minLength: 3 } } },
} as unknown as Manifest;
const wide = manifest.topologies[0] as Topology;
const machine = (name: string, more: Partial<Allocation> = {}) =>
  ({
    id: name,
    name,
    state: "active",
    node_state: "ready",
    scheduler_type: null,
    in_use_by: null,
    ...more,
  }) as Allocation;

describe("a draft", () => {
  const draft = {
    name: "farm-1",
    topology: "wide",
    placement: { head: ["a"], hand: ["b", "c"] },
    inputs: { colour: "red" },
  };

  test("is complete with a name, enough machines and settings that fit", () => {
    expect(missing(draft, wide, manifest)).toBeNull();
  });

  test.each([
    [{ name: "Farm 1" }, "Give it a name."],
    [{ placement: { hand: ["b", "c"] } }, "Choose a machine for the head."],
    [{ placement: { head: ["a"], hand: ["b"] } }, "Choose at least 2 machines for the hand."],
    [{ placement: { head: ["a"], hand: ["b", "c", "d", "e", "f"] } }, "Choose at most 4 machines for the hand."],
    [{ inputs: {} }, "A setting is missing or does not fit yet."],
  ])("says what is missing first: %o", (change, sentence) => {
    expect(missing({ ...draft, ...change }, wide, manifest)).toBe(sentence);
  });

  test("says how many machines a component takes", () => {
    expect([howMany({ min: 1, max: 1 }), howMany({ min: 2, max: 4 }), howMany({ min: 1, max: null })]).toEqual([
      "One machine",
      "2 to 4 machines",
      "At least one machine",
    ]);
  });
});

describe("a machine", () => {
  test.each([
    [machine("free"), null],
    [machine("used", { in_use_by: { instance_id: "i", instance_name: "other" } }), "Used by other"],
    [machine("leaving", { state: "releasing" }), "The allocation is releasing"],
    [machine("kept", { scheduler_type: "ray" }), "Kept for ray"],
    [machine("away", { node_state: "lost" }), "The machine is lost"],
    [machine("b"), "Chosen as hand"],
  ])("can be chosen, or says why not", (one, reason) => {
    expect(whyNot(one, "bare_metal", takenBy({ head: ["a"], hand: ["b"] }, "head", manifest))).toBe(reason);
  });

  test("that nobody can choose comes last", () => {
    const order = inOrder([machine("a", { state: "releasing" }), machine("c"), machine("b")], "bare_metal");
    expect(order.map((one) => one.name)).toEqual(["b", "c", "a"]);
  });
});

test("settings are checked as JSON Schema 2020-12 says", () => {
  expect(check(manifest.inputs_schema, { colour: "red" })).toEqual([]);
  expect(check(manifest.inputs_schema, { colour: "r" }).length).toBeGreaterThan(0);
});
