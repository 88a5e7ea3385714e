// Reads the well-known parts of `adapter_detail` (contracts/adapter-detail.schema.json). The platform does not check
// them, so a part of an unexpected shape is ignored; the types only keep the names of the fields right.

import type { components } from "../api/detail.gen";

type Published = components["schemas"];
type Named<T> = { [Key in keyof T as string extends Key ? never : Key]?: unknown };

export type AdapterDetail = Named<Published["AdapterDetail"]>;
export type Detail = AdapterDetail | Record<string, unknown> | null | undefined;
export type Check = Named<Published["Check"]>;
export type HostChecks = Named<Published["HostChecks"]>;
export type Unit = Named<Published["Unit"]>;
export type Drift = Named<Published["Drift"]>;
export type Forecast = Named<Published["Forecast"]>;

/** The named parts of a detail; everything else in it is opaque. */
export function partsOf(detail: Detail): AdapterDetail {
  return detail ?? {};
}

export function rowsOf<T extends object>(value: unknown): T[] {
  return Array.isArray(value) ? value.filter((one): one is T => typeof one === "object" && one !== null) : [];
}

export function forecastOf(detail: Detail): Forecast {
  const { forecast } = partsOf(detail);
  return typeof forecast === "object" && forecast !== null ? forecast : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function linesOf(value: unknown): string[] {
  if (typeof value === "string") return value.split("\n").filter(Boolean);
  return Array.isArray(value) ? value.filter((line) => typeof line === "string") : [];
}

interface Answer {
  host: string;
  check: string;
  ok: boolean;
  sentence: string;
}

function answersOf(host: unknown, checks: unknown): Answer[] {
  return rowsOf<Check>(checks).map(({ check, ok, sentence }) => ({
    host: textOf(host),
    check: textOf(check),
    ok: ok === true,
    sentence: textOf(sentence),
  }));
}

/** The checks per machine that were made before anything was changed. */
export function preflightOf(detail: Detail): Answer[] {
  return rowsOf<HostChecks>(partsOf(detail).preflight).flatMap(({ host, checks }) => answersOf(host, checks));
}

const HEALTHY = new Set(["active", "inactive"]);

/** What a failed operation found, without what is fine. An operation that was not tried shows the failure before it. */
export function evidenceOf(reported: Detail) {
  const [earlier] = rowsOf<Named<Published["LastFailure"]>>([partsOf(reported).last_failure]);
  const detail: AdapterDetail = earlier ?? partsOf(reported);
  const preflight = preflightOf(detail);
  return {
    earlier: textOf(earlier?.operation_id),
    step: textOf(detail.step),
    host: textOf(detail.host),
    services: rowsOf<Unit>(detail.units).filter((unit) => !HEALTHY.has(textOf(unit.active))),
    failed: [...preflight, ...answersOf(detail.host, detail.checks)].filter((answer) => !answer.ok),
    held: preflight.filter((answer) => answer.ok).length,
    output: linesOf(detail.output),
    log: linesOf(detail.log),
  };
}
