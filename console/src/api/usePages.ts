// Long lists, page after page: the platform's cursors, kept out of sight.

import { useInfiniteQuery } from "@tanstack/react-query";

interface PageOf<T> {
  items: T[];
  next_cursor?: string | null;
}

/** `path` is how events find what they make old; `asked` tells apart what is asked of it. */
export function usePages<T>(
  path: string,
  asked: unknown,
  read: (cursor: string | undefined) => Promise<{ data?: PageOf<T> }>,
) {
  return useInfiniteQuery({
    queryKey: ["pages", path, asked],
    queryFn: async ({ pageParam }): Promise<PageOf<T>> => (await read(pageParam)).data ?? { items: [] },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    select: ({ pages }) => pages.flatMap((page) => page.items),
  });
}
