import { describe, expect, test } from "vitest";
import { evidenceOf, preflightOf } from "../src/findings/read";

describe("what apps say of a failure", () => {
  const preflight = [
    { host: "a", checks: [{ check: "ports_free", ok: false, sentence: "Port 1 is taken." }] },
    { host: "b", checks: [{ check: "ports_free", ok: true, sentence: "The ports are free." }] },
  ];

  test("is shown without what is well", () => {
    const seen = evidenceOf({
      step: "start",
      host: "a",
      preflight,
      checks: [{ check: "answers", ok: false, sentence: "It does not answer." }],
      units: [
        { unit: "x.service", active: "failed" },
        { unit: "y.service", active: "active" },
      ],
      output: "one\ntwo\n",
      log: ["three"],
    });
    expect(seen.failed.map((row) => row.sentence)).toEqual(["Port 1 is taken.", "It does not answer."]);
    expect(seen.services.map((unit) => unit.unit)).toEqual(["x.service"]);
    expect([seen.held, seen.output, seen.log]).toEqual([1, ["one", "two"], ["three"]]);
  });

  test("is what was seen the last time, where nothing was tried", () => {
    const seen = evidenceOf({ circuit: "open", last_failure: { operation_id: "op_1", step: "start", host: "a" } });
    expect([seen.earlier, seen.step, seen.host]).toEqual(["op_1", "start", "a"]);
  });

  test("is passed over where it has another shape than expected", () => {
    expect(preflightOf({ preflight: "fine" })).toEqual([]);
    expect(preflightOf({ preflight: [null, { host: 7, checks: "none" }] })).toEqual([]);
    expect(evidenceOf(null).failed).toEqual([]);
    expect(evidenceOf({ units: [3], output: { a: 1 }, log: [1, "line"] }).log).toEqual(["line"]);
  });
});
