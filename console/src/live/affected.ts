// Which of the cached answers an event makes out of date, from contracts/events.json.

import { EVENTS, READS } from "../api/facts.gen";

const KINDS: Record<string, readonly (keyof typeof READS)[]> = EVENTS;

/** The routes to read again. A type that is newer than this console still shows up in the list of events. An event of
 * another project changes nothing that is read from this one. */
export function affectedBy(type: string, ofAnotherProject = false): string[] {
  const paths: string[] = (KINDS[type] ?? ["event"]).flatMap((kind) => READS[kind]);
  return ofAnotherProject ? paths.filter((path) => !path.startsWith("/v1/projects/")) : paths;
}
