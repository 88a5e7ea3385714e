// Long lists, one page at a time: the platform's cursors, kept out of sight. What is not looked at is neither kept on
// the screen nor read again, however long the list is.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

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

/** `path` is how events find what they make old; `asked` tells apart what is asked of it. */
export function usePages<T>(path: string, asked: unknown, read: Read<T>) {
  const about = JSON.stringify(asked);
  const [turned, turn] = useState({ about, cursors: [] as string[] });
  const cursors = turned.about === about ? turned.cursors : []; // something else is asked: from the start
  const cursor = cursors.at(-1);
  const found = useQuery({
    queryKey: ["pages", path, about, cursor ?? ""],
    queryFn: async (): Promise<PageOf<T>> => (await read(cursor)).data ?? { items: [] },
    placeholderData: (before, query) => (query?.queryKey[2] === about ? before : undefined),
  });
  const empty = found.data?.items.length === 0 && !found.isPlaceholderData && cursors.length > 0;
  useEffect(() => {
    if (empty) turn((now) => ({ ...now, cursors: now.cursors.slice(0, -1) })); // what was on this page is gone
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

/** All of a list, for choosing among it: page after page, none of them big. */
export function useEvery<T>(path: string, asked: unknown, read: Read<T>, enabled = true) {
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
