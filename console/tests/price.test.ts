import { expect, test } from "vitest";
import { hardwareOf, hourOf, microsOf, priceOf } from "../src/capacity/price";

test("a price is whole millionths on the wire, and money on the screen", () => {
  expect([0.1 + 0.2, 24.5, 0].map(microsOf)).toEqual([300_000, 24_500_000, 0]);
  const shown = (price_micros_per_hour: number) => priceOf({ price_micros_per_hour, currency: "EUR" });
  expect([0, 24_500_000, 1].map(shown)).toEqual(["free", "24.50 EUR", "0.000001 EUR"]);
});

test("a machine without GPUs says so", () => {
  expect(hardwareOf({ gpu_count: 0, gpu_model: "none", cpus: 4, memory_mb: 2048 })).toBe("no GPU · 4 CPUs · 2 GiB");
});

test("an hour of a plan is the sum of what is known, and says what is not", () => {
  const host = { allocation_id: "a", node_name: "n", address: "x", components: [] };
  const priced = { ...host, price_micros_per_hour: 1_500_000, currency: "EUR" };
  expect(hourOf([host])).toBe("");
  expect(hourOf([priced, priced])).toBe("3.00 EUR per hour.");
  expect(hourOf([priced, host])).toBe("1.50 EUR per hour; no price for 1 machine.");
});
