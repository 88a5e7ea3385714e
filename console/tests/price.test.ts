import { expect, test } from "vitest";
import { madeOf, microsOf, priceOf } from "../src/capacity/price";

test("a price is whole millionths on the wire, and money on the screen", () => {
  expect([0.1 + 0.2, 24.5, 0].map(microsOf)).toEqual([300_000, 24_500_000, 0]);
  const said = (price_micros_per_hour: number) => priceOf({ price_micros_per_hour, currency: "EUR" });
  expect([0, 24_500_000, 1].map(said)).toEqual(["free", "24.50 EUR", "0.000001 EUR"]);
});

test("a machine without GPUs says so", () => {
  expect(madeOf({ gpu_count: 0, gpu_model: "none", cpus: 4, memory_mb: 2048 })).toBe("no GPU · 4 CPUs · 2 GiB");
});
