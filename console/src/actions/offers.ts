// What can be asked of a thing now: the platform's table, the app's words, the state's reasons and one's own rights.

import type { Schemas } from "../api/client";
import { actionTitle, componentTitle, type Manifest } from "../catalog/manifest";
import { words } from "../parts/tone";
import { type Action, ADD, OF_INSTANCE, OF_MEMBER, OF_OPERATION } from "./table";

export interface Offer extends Action {
  key: string;
  title: string;
  allowed: boolean; // by the state and the app
  reason: string; // if not
}

type Possible = Schemas["ActionView"][];

export function instanceOffers(possible: Possible, manifest: Manifest | undefined): Offer[] {
  return offers(possible, (key) => {
    if (key.startsWith("add_")) {
      const title = actionTitle(manifest, "instance", key);
      return title ? { ...ADD, title } : undefined;
    }
    return worded(OF_INSTANCE[key], actionTitle(manifest, "instance", key));
  });
}

export function memberOffers(possible: Possible, manifest: Manifest | undefined): Offer[] {
  const usual = offers(possible, (key) => worded(OF_MEMBER[key], actionTitle(manifest, "member", key)));
  return usual.some(({ key }) => LEAVING.has(key)) && GONE ? [...usual, GONE] : usual;
}

export function operationOffers(possible: Possible): Offer[] {
  return offers(possible, (key) => worded(OF_OPERATION[key], undefined)).filter((one) => one.allowed);
}

/** The app's word goes first; the platform's own actions need none; others the app does not offer at all. */
function worded(action: Action | undefined, said: string | undefined): (Action & { title: string }) | undefined {
  const title = said ?? action?.title;
  return action && title ? { ...action, title: said ? words(said) : title } : undefined;
}

function offers(possible: Possible, known: (key: string) => (Action & { title: string }) | undefined): Offer[] {
  return possible.flatMap(({ action: key, allowed, reason }) => {
    const action = known(key);
    if (!action || (!allowed && RARE.has(key))) return [];
    return [{ ...action, key, allowed, reason }];
  });
}

const LEAVING = new Set(["remove", "replace"]);
/** Where members can leave at all. The platform knows whether the machine still reports, and says so in the plan. */
const [GONE] = offers([{ action: "gone", allowed: true, reason: "" }], (key) => worded(OF_MEMBER[key], undefined));
const RARE = new Set(["retry", "tombstone"]); // not worth a line while they are not possible

export function machinesFor(offer: Offer, manifest: Manifest | undefined): string {
  return offer.key.startsWith("add_") ? componentTitle(manifest, offer.key.slice(4)) : "";
}
