// How the console presents each action: its words, what the dialog asks for, and how prominent it is. The permission of
// each comes from contracts/actions.json; an action that is new there does not compile until it has words here. Which
// of them an app offers, and what it calls them, is in its manifest; whether they are possible now, in the answer.

import { ACTIONS } from "../api/facts.gen";

export type Need = "machines" | "machine" | "successor" | "inputs" | "version" | "deadline" | "reason" | "anyway";

interface Wording {
  impact: string;
  title?: string; // where the app has no title of its own for it
  verb?: string; // on the button of the dialog, if not the title
  danger?: boolean; // cannot be undone: the name must be typed
  needs?: Need[];
  plan?: boolean; // the platform can show beforehand what will happen
  main?: boolean; // shown as a button, not only in the menu
  undoes?: boolean; // goes back instead of on
}

export interface Action extends Wording {
  permission: string;
}

const ADDS = "add_{component}";
type InstanceAction = Exclude<keyof typeof ACTIONS.instance, typeof ADDS>;

function withPermission<Key extends string>(
  words: Record<Key, Wording>,
  known: Record<Key, { permission: string }>,
): Record<string, Action> {
  const keys = Object.keys(words) as Key[];
  return Object.fromEntries(keys.map((key) => [key, { ...words[key], permission: known[key].permission }]));
}

export const OF_INSTANCE = withPermission<InstanceAction>(
  {
    start: { impact: "Starts its services on the machines it holds.", main: true },
    retry: {
      title: "Retry",
      impact: "Runs the failed operation again. Steps that are done already are not repeated.",
      needs: ["anyway"],
      main: true,
    },
    update: { impact: "Applies new settings to the running instance.", needs: ["inputs"] },
    restart: { impact: "Restarts its services on every machine. Running jobs may be interrupted." },
    stop: { impact: "Stops its services. It keeps its machines and can be started again." },
    upgrade: { impact: "Moves the instance to another version of the app.", needs: ["version"] },
    rotate_keys: {
      impact: "Replaces the secrets its members share. Running jobs continue; a job that starts meanwhile may fail.",
    },
    rollback: { impact: "Goes back to the version before the last upgrade." },
    decommission: {
      title: "Decommission",
      impact: "Removes the instance and all its data from every machine. This cannot be undone.",
      danger: true,
      plan: true,
    },
  },
  ACTIONS.instance,
);

export const ADD: Action = {
  permission: ACTIONS.instance[ADDS].permission,
  impact: "Each machine joins in an operation of its own while the instance keeps running.",
  needs: ["machines"],
  plan: true,
  main: true,
};

export const OF_MEMBER: Record<string, Action> = {
  ...withPermission<keyof typeof ACTIONS.member>(
    {
      drain: { impact: "No new jobs start on it. Running jobs can finish.", needs: ["deadline"] },
      undrain: { impact: "It accepts jobs again." },
      restart: { impact: "Restarts its services. Jobs on it may be interrupted." },
      retry: { title: "Retry", impact: "Runs the failed operation again.", needs: ["anyway"] },
      replace: {
        impact: "A new member joins on another machine. Then this one is drained and removed.",
        needs: ["machine", "deadline"],
      },
      remove: {
        impact:
          "No new jobs start on it. Once running jobs have finished it leaves the instance and its machine is free.",
        needs: ["deadline"],
        danger: true,
        plan: true,
      },
      tombstone: {
        title: "Force-close (cleanup not verified)",
        verb: "Force-close",
        impact:
          "Counts as removed although its machine was not checked. The machine is blocked until you confirm it is clean.",
        danger: true,
        needs: ["reason"],
      },
    },
    ACTIONS.member,
  ),
  gone: {
    permission: ACTIONS.operation.abandon.permission,
    title: "Machine is lost…",
    verb: "Remove member",
    impact:
      "Use this when the machine is dead and won't come back; it is refused while the machine still reports. All access to the machine is revoked. The member leaves the instance without cleanup, and the machine is blocked until you confirm it is clean.",
    danger: true,
    needs: ["successor", "reason"],
    plan: true,
  },
};

export const OF_OPERATION = withPermission<keyof typeof ACTIONS.operation>(
  {
    retry: {
      title: "Retry",
      impact: "Starts a new operation of the same kind. Steps that are done already are not repeated.",
      needs: ["anyway"],
      main: true,
    },
    cancel: {
      title: "Cancel operation",
      impact: "Stops at the next safe point.",
      main: true,
      undoes: true,
    },
    release_claim: {
      title: "Release claim",
      impact:
        "Takes the operation from its operator. The next operator continues from the actual state of the machines.",
    },
    abandon: {
      title: "Force-close (cleanup not verified)",
      verb: "Force-close",
      impact:
        "Ends without knowing what is left on the machines. Each machine is blocked until you confirm it is clean.",
      danger: true,
      needs: ["reason"],
    },
  },
  ACTIONS.operation,
);
