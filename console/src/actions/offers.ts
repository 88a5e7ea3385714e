// The actions of a resource now: the platform's table, the app's titles, and why one is not possible.

import type { Schemas } from "../api/client";
import { actionTitle, componentTitle, type Manifest } from "../catalog/manifest";
import { displayName } from "../parts/names";
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

/** The app's title goes first. An action without any title is not offered by this app. */
function worded(action: Action | undefined, appTitle: string | undefined): (Action & { title: string }) | undefined {
  const title = appTitle ?? action?.title;
  return action && title ? { ...action, title: appTitle ? displayName(appTitle) : title } : undefined;
}

function offers(possible: Possible, known: (key: string) => (Action & { title: string }) | undefined): Offer[] {
  return possible.flatMap(({ action: key, allowed, reason }) => {
    const action = known(key);
    if (!action || (!allowed && RARE.has(key))) return [];
    return [{ ...action, key, allowed, reason }];
  });
}

const LEAVING = new Set(["remove", "replace"]);
/** Offered where members can leave. The plan shows whether the machine still reports. */
const [GONE] = offers([{ action: "gone", allowed: true, reason: "" }], (key) => worded(OF_MEMBER[key], undefined));
const RARE = new Set(["retry", "tombstone"]); // hidden while they are not possible

export function machinesFor(offer: Offer, manifest: Manifest | undefined): string {
  return offer.key.startsWith("add_") ? componentTitle(manifest, offer.key.slice(4)) : "";
}
