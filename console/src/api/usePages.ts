// Long lists, one page at a time, with the API's cursors. Only the page on the screen is kept and refreshed.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { READS } from "./facts.gen";

/** A route that is read, as the contract writes it: by this name events find what they make out of date. */
export type ReadPath = (typeof READS)[keyof typeof READS][number];

interface PageOf<T> {
  items: T[];
  next_cursor?: string | null;
}

type Read<T> = (cursor: string | undefined) => Promise<{ data?: PageOf<T> }>;

export interface Turning {
  number: number; // of the page, from 1
  more: boolean;
  busy: boolean;
  next: () => void;
  back: () => void;
}

/** `asked` tells queries of the same path apart. */
export function usePages<T>(path: ReadPath, asked: unknown, read: Read<T>) {
  const about = JSON.stringify(asked);
  const [turned, turn] = useState({ about, cursors: [] as string[] });
  const cursors = turned.about === about ? turned.cursors : []; // another query: from the start
  const cursor = cursors.at(-1);
  const found = useQuery({
    queryKey: ["pages", path, about, cursor ?? ""],
    queryFn: async (): Promise<PageOf<T>> => (await read(cursor)).data ?? { items: [] },
    placeholderData: (before, query) => (query?.queryKey[2] === about ? before : undefined),
  });
  const empty = found.data?.items.length === 0 && !found.isPlaceholderData && cursors.length > 0;
  useEffect(() => {
    if (empty) turn((now) => ({ ...now, cursors: now.cursors.slice(0, -1) })); // the last item of this page was deleted
  }, [empty]);
  const following = found.data?.next_cursor;
  const turning: Turning = {
    number: cursors.length + 1,
    more: Boolean(following),
    busy: found.isPlaceholderData,
    next: () => following && turn({ about, cursors: [...cursors, following] }),
    back: () => turn({ about, cursors: cursors.slice(0, -1) }),
  };
  return { data: found.data?.items, error: found.error, refetch: found.refetch, turning };
}

const MOST_PAGES = 20;

/** A whole list, page by page, to choose from. */
export function useEvery<T>(path: ReadPath, asked: unknown, read: Read<T>, enabled = true) {
  return useQuery({
    queryKey: ["every", path, JSON.stringify(asked)],
    enabled,
    queryFn: async (): Promise<T[]> => {
      const all: T[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MOST_PAGES; page++) {
        const { data } = await read(cursor);
        all.push(...(data?.items ?? []));
        if (!data?.next_cursor) break;
        cursor = data.next_cursor;
      }
      return all;
    },
  });
}
