// Relative times and durations as text.

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [4.35, "week"],
  [12, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const exact = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "long" });

export function ago(at: string, now: number): string {
  let value = (Date.parse(at) - now) / 1000;
  if (Math.abs(value) < 5) return "just now";
  for (const [most, unit] of STEPS) {
    if (Math.abs(value) < most) return relative.format(Math.round(value), unit);
    value /= most;
  }
  return at;
}

export function exactly(at: string): string {
  return exact.format(Date.parse(at));
}

export function lasted(from: string, to: string): string {
  const seconds = Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
