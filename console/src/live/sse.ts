// A parser for server-sent events: EventSource only delivers event names that are registered in advance.

export interface SseEvent {
  id: string;
  data: string;
}

/** Takes text as it arrives and returns the complete events. */
export class SseReader {
  private rest = "";

  feed(text: string): SseEvent[] {
    const blocks = (this.rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(parse).filter((event): event is SseEvent => event !== null);
  }
}

function parse(block: string): SseEvent | null {
  let id = "";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^(id|data): ?(.*)$/.exec(line) ?? [];
    if (field === "id") id = value ?? "";
    if (field === "data") data.push(value ?? "");
  }
  return data.length ? { id, data: data.join("\n") } : null;
}
