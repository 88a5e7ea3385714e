// What the platform lets people ask for, as one table per target: the key it needs, what it does, what must be said.
// Which of them an app offers, and what it calls them, is in its manifest; whether they are possible now, in the answer.

export type Need = "machines" | "machine" | "successor" | "inputs" | "version" | "deadline" | "reason" | "anyway";

export interface Action {
  permission: string;
  impact: string;
  title?: string; // where the app has no word of its own for it
  danger?: boolean; // cannot be taken back: the name must be typed
  needs?: Need[];
  plan?: boolean; // the platform can say beforehand what will happen
  main?: boolean; // shown as a button, not only in the menu
  undoes?: boolean; // a way back, not the way on
}

const OPERATE = "apps.instance.operate";

export const OF_INSTANCE: Record<string, Action> = {
  start: { permission: OPERATE, impact: "It comes up again on the machines it holds.", main: true },
  retry: {
    permission: "apps.operation.retry",
    title: "Retry",
    impact: "What failed is asked for again; what is done already is not done twice.",
    needs: ["anyway"],
    main: true,
  },
  update: {
    permission: "apps.instance.update",
    impact: "New settings are applied to the running instance.",
    needs: ["inputs"],
  },
  restart: {
    permission: OPERATE,
    impact: "Its services stop and start again on every machine. Work that runs may be interrupted.",
  },
  stop: { permission: OPERATE, impact: "Its services stop. It keeps its machines, and can be started again." },
  upgrade: {
    permission: "apps.instance.upgrade",
    impact: "It goes to another version of the app.",
    needs: ["version"],
  },
  rotate_keys: {
    permission: "apps.instance.rotate",
    impact: "Its members get new shared secrets. Work that runs goes on; what begins at that moment may be refused.",
  },
  rollback: { permission: "apps.instance.upgrade", impact: "It goes back to the version before the last upgrade." },
  decommission: {
    permission: "apps.instance.decommission",
    title: "Decommission",
    impact: "It is torn down on all of its machines, and everything in it is gone. This cannot be taken back.",
    danger: true,
    plan: true,
  },
};

export const ADD: Action = {
  permission: "apps.member.add",
  impact: "One operation for each machine; they join side by side while the instance runs.",
  needs: ["machines"],
  plan: true,
  main: true,
};

export const OF_MEMBER: Record<string, Action> = {
  drain: {
    permission: "apps.member.operate",
    impact: "Nothing new begins on it; what runs may end.",
    needs: ["deadline"],
  },
  undrain: { permission: "apps.member.operate", impact: "It takes work again." },
  restart: {
    permission: "apps.member.operate",
    impact: "Its services stop and start again. Work on it may be interrupted.",
  },
  retry: {
    permission: "apps.member.operate",
    title: "Retry",
    impact: "What failed on it is asked for again.",
    needs: ["anyway"],
  },
  replace: {
    permission: "apps.member.remove",
    impact: "A new member joins on another machine; then this one goes, when what runs on it has ended.",
    needs: ["machine", "deadline"],
  },
  remove: {
    permission: "apps.member.remove",
    impact: "Nothing new begins on it. When what runs has ended it leaves the instance, and its machine is free again.",
    needs: ["deadline"],
    danger: true,
    plan: true,
  },
  gone: {
    permission: "apps.operation.abandon",
    title: "Its machine is gone",
    impact:
      "For a machine that is dead and does not come back; one that still reports is refused. From now on nobody gets onto it. The member leaves the instance without anything being cleaned there, and nothing new is placed on the machine until somebody has looked.",
    danger: true,
    needs: ["successor", "reason"],
    plan: true,
  },
  tombstone: {
    permission: "apps.operation.abandon",
    title: "Give up without evidence",
    impact:
      "It counts as removed although nobody has checked its machine; nothing new is placed there until somebody has.",
    danger: true,
    needs: ["reason"],
  },
};

export const OF_OPERATION: Record<string, Action> = {
  retry: {
    permission: "apps.operation.retry",
    title: "Retry",
    impact: "A new operation of the same kind; what is done already is not done twice.",
    needs: ["anyway"],
    main: true,
  },
  cancel: {
    permission: "apps.operation.cancel",
    title: "Cancel",
    impact: "The controller is asked to stop at the next safe point.",
    main: true,
    undoes: true,
  },
  release_claim: {
    permission: "apps.operation.release",
    title: "Take it from its controller",
    impact: "The controller that holds it loses it; the next one that asks goes on from where the machines really are.",
  },
  abandon: {
    permission: "apps.operation.abandon",
    title: "Give up without evidence",
    impact:
      "It ends without anybody knowing what is on the machines; each of them gets a record that somebody must look.",
    danger: true,
    needs: ["reason"],
  },
};
