// What apps say in `adapter_detail` under names that mean the same for every app (docs/guides/app-team.md).
// They write it freely, so whatever has another shape than expected is passed over.

export type Detail = Record<string, unknown> | null | undefined;
export type Row = Record<string, unknown>;

export function rowsOf(value: unknown): Row[] {
  return Array.isArray(value) ? value.filter((one): one is Row => typeof one === "object" && one !== null) : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function linesOf(value: unknown): string[] {
  if (typeof value === "string") return value.split("\n").filter(Boolean);
  return Array.isArray(value) ? value.filter((line) => typeof line === "string") : [];
}

/** One per machine and check, before anything was touched. */
export function preflightOf(detail: Detail): { host: string; check: string; ok: boolean; sentence: string }[] {
  return rowsOf(detail?.preflight).flatMap((machine) =>
    rowsOf(machine.checks).map((row) => ({
      host: textOf(machine.host),
      check: textOf(row.check),
      ok: row.ok === true,
      sentence: textOf(row.sentence),
    })),
  );
}

const WELL = new Set(["active", "inactive"]);

/** What a failed operation saw, in short: what is well is left out. One that was not even tried shows the time before. */
export function evidenceOf(told: Detail) {
  const [earlier] = rowsOf([told?.last_failure]);
  const detail = earlier ?? told;
  return {
    earlier: textOf(earlier?.operation_id),
    step: textOf(detail?.step),
    host: textOf(detail?.host),
    services: rowsOf(detail?.units).filter((unit) => !WELL.has(textOf(unit.active))),
    noes: [
      ...preflightOf(detail).filter((row) => !row.ok),
      ...rowsOf(detail?.checks)
        .filter((row) => row.ok !== true)
        .map((row) => ({
          host: textOf(detail?.host),
          check: textOf(row.check),
          ok: false,
          sentence: textOf(row.sentence),
        })),
    ],
    held: preflightOf(detail).filter((row) => row.ok).length,
    said: linesOf(detail?.output),
    log: linesOf(detail?.log),
  };
}
