// Prices as the platform keeps them (millionths of a currency, whole numbers) and as people read them.

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

/** What an hour of all of them costs; a currency each, and how many have no price that anybody knows. */
export function hourOf(hosts: Schemas["PlannedHost"][]): string {
  const sums = new Map<string, number>();
  for (const host of hosts)
    if (host.currency) sums.set(host.currency, (sums.get(host.currency) ?? 0) + (host.price_micros_per_hour ?? 0));
  if (!sums.size) return "";
  const unknown = hosts.filter((host) => !host.currency).length;
  const known = [...sums]
    .map(([currency, micros]) => priceOf({ price_micros_per_hour: micros, currency }))
    .join(" and ");
  return `An hour costs ${known}${unknown ? `, and what ${unknown} more cost is not known` : ""}.`;
}

export function microsOf(price: number): number {
  return Math.round(price * MILLION);
}

export function madeOf(one: Pick<Sku, "gpu_count" | "gpu_model" | "cpus" | "memory_mb">): string {
  const gpus = one.gpu_count ? `${one.gpu_count} × ${one.gpu_model}` : "no GPU";
  return `${gpus} · ${one.cpus} CPUs · ${Math.round(one.memory_mb / 1024)} GiB`;
}
