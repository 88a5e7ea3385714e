import { expect, test } from "vitest";
import { named, renamed, slugOf } from "../src/tenancy/naming";

test("a short name comes from the name, and always fits", () => {
  expect(["Ångström Labs", "42 Labs!", "A", "-", `${"long ".repeat(12)}`].map(slugOf)).toEqual([
    "angstrom-labs",
    "labs",
    "a",
    "",
    "long-long-long-long-long-long-long-long",
  ]);
  expect(named({ name: "A", slug: slugOf("A") })).toBe(false);
  expect(named({ name: "Labs", slug: slugOf("Labs") })).toBe(true);
});

test("a short name somebody wrote stays when the name changes", () => {
  expect(renamed({ name: "Red", slug: "red" }, "Blue")).toEqual({ name: "Blue", slug: "blue" });
  expect(renamed({ name: "Red", slug: "r1d" }, "Blue")).toEqual({ name: "Blue", slug: "r1d" });
});
