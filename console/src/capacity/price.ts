// Prices: the API has whole millionths of a currency, people read decimals.

import type { Schemas } from "../api/client";

type Sku = Schemas["SkuView"];
const MILLION = 1_000_000;

export function priceOf({
  price_micros_per_hour: micros,
  currency,
}: Pick<Sku, "price_micros_per_hour" | "currency">): string {
  if (!micros) return "free";
  return `${(micros / MILLION).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 })} ${currency}`;
}

/** The price per hour of all of them, per currency, and how many have no known price. */
export function hourOf(hosts: Schemas["PlannedHost"][]): string {
  const sums = new Map<string, number>();
  for (const host of hosts)
    if (host.currency) sums.set(host.currency, (sums.get(host.currency) ?? 0) + (host.price_micros_per_hour ?? 0));
  if (!sums.size) return "";
  const unknown = hosts.filter((host) => !host.currency).length;
  const known = [...sums]
    .map(([currency, micros]) => priceOf({ price_micros_per_hour: micros, currency }))
    .join(" and ");
  return `${known} per hour${unknown ? `; no price for ${unknown} machine${unknown === 1 ? "" : "s"}` : ""}.`;
}

export function microsOf(price: number): number {
  return Math.round(price * MILLION);
}

export function hardwareOf(one: Pick<Sku, "gpu_count" | "gpu_model" | "cpus" | "memory_mb">): string {
  const gpus = one.gpu_count ? `${one.gpu_count} × ${one.gpu_model}` : "no GPU";
  return `${gpus} · ${one.cpus} CPUs · ${Math.round(one.memory_mb / 1024)} GiB`;
}
