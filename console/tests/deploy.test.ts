import { describe, expect, test } from "vitest";
import type { Manifest, Topology } from "../src/catalog/manifest";
import { howMany, missing, suggestedName, takenBy } from "../src/deploy/draft";
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
    [{ name: "Farm 1" }, "Enter a name."],
    [{ placement: { hand: ["b", "c"] } }, "Choose a machine for the head."],
    [{ placement: { head: ["a"], hand: ["b"] } }, "Choose at least 2 machines for the hand."],
    [{ placement: { head: ["a"], hand: ["b", "c", "d", "e", "f"] } }, "Choose at most 4 machines for the hand."],
    [{ inputs: {} }, "A setting is missing or invalid."],
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

test("the proposed name is not taken", () => {
  expect(suggestedName(manifest, [])).toBe(`${manifest.app_slug}-1`);
  expect(
    suggestedName(
      manifest,
      [1, 2, 4].map((number) => `${manifest.app_slug}-${number}`),
    ),
  ).toBe(`${manifest.app_slug}-3`);
});

test("a machine can be selected for both components where the manifest lets them share", () => {
  const shared = { ...wide, components: { ...wide.components, hand: { min: 1, may_share_with: "head" } } };
  const placement = { head: ["a"], hand: [] };
  expect(takenBy(placement, "hand", wide, manifest)).toEqual({ a: "head" });
  expect(takenBy(placement, "hand", shared, manifest)).toEqual({});
  expect(takenBy({ head: [], hand: ["a"] }, "head", shared, manifest)).toEqual({});
});

describe("a machine", () => {
  test.each([
    [machine("free"), null],
    [machine("used", { in_use_by: { instance_id: "i", instance_name: "other" } }), "Used by other"],
    [machine("leaving", { state: "releasing" }), "Being released"],
    [machine("kept", { scheduler_type: "ray" }), "Reserved for ray"],
    [machine("away", { node_state: "lost" }), "Machine is lost"],
    [machine("b"), "Selected as hand"],
  ])("is available, or the reason is given", (one, reason) => {
    expect(whyNot(one, "bare_metal", takenBy({ head: ["a"], hand: ["b"] }, "head", wide, manifest))).toBe(reason);
  });

  test("that is not available comes last", () => {
    const order = inOrder([machine("a", { state: "releasing" }), machine("c"), machine("b")], "bare_metal");
    expect(order.map((one) => one.name)).toEqual(["b", "c", "a"]);
  });
});

test("settings are checked as JSON Schema 2020-12 says", () => {
  expect(check(manifest.inputs_schema, { colour: "red" })).toEqual([]);
  expect(check(manifest.inputs_schema, { colour: "r" }).length).toBeGreaterThan(0);
});
