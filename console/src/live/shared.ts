// One event stream per browser: a browser opens six connections to a server, and every open stream takes one. The tabs
// that follow the same source elect a leader by a lock; it reads the stream and passes each event on to the others.

import { follow, type Listener, nameOf, type PlatformEvent, type Source, type Standing } from "./stream";

type Message =
  | { kind: "joined" } // a tab asks for the standing
  | { kind: "standing"; standing: Standing }
  | { kind: "missed" }
  | { kind: "event"; event: PlatformEvent; cursor: string };

/** Browsers without locks (pages that are not served over HTTPS) open a stream per tab. */
export async function followShared(source: Source, listener: Listener, stop: AbortSignal): Promise<void> {
  if (!navigator.locks) return follow(source, listener, stop);
  const name = `gpuaas.events.${nameOf(source)}`;
  const channel = new BroadcastChannel(name);
  const tab = new Tab(channel, listener);
  try {
    await navigator.locks.request(name, { signal: stop }, () => tab.lead(source, stop));
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    channel.close();
  }
}

class Tab {
  private leads = false;
  private joined = false;
  private standing: Standing = "connecting";
  private cursor: string | null = null;

  constructor(
    private readonly channel: BroadcastChannel,
    private readonly listener: Listener,
  ) {
    channel.onmessage = ({ data }: MessageEvent<Message>) => this.receive(data);
    this.send({ kind: "joined" });
  }

  /** Continues after the last event that the previous leader passed on. */
  async lead(source: Source, stop: AbortSignal): Promise<void> {
    this.leads = true;
    const { listener } = this;
    await follow(
      source,
      {
        heard: (event, cursor) => {
          this.send({ kind: "event", event, cursor });
          listener.heard(event, cursor);
        },
        missed: () => {
          this.send({ kind: "missed" });
          listener.missed();
        },
        standing: (standing) => {
          this.standing = standing;
          this.send({ kind: "standing", standing });
          listener.standing(standing);
        },
      },
      stop,
      this.cursor,
    );
  }

  private send(message: Message): void {
    this.channel.postMessage(message);
  }

  private receive(message: Message): void {
    if (this.leads) {
      if (message.kind === "joined") this.send({ kind: "standing", standing: this.standing });
      return;
    }
    if (message.kind === "standing") {
      if (!this.joined) this.listener.missed(); // answers read before this moment may be older
      this.joined = true;
      this.listener.standing(message.standing);
    }
    if (message.kind === "missed") this.listener.missed();
    if (message.kind === "event") {
      this.cursor = message.cursor;
      this.listener.heard(message.event, message.cursor);
    }
  }
}
