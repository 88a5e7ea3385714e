// A paged list of cards, with an empty state.

import { Stack } from "@mantine/core";
import type { ReactNode } from "react";
import type { usePages } from "../api/usePages";
import { Pager, Shown } from "./Page";

interface Props<T> {
  of: ReturnType<typeof usePages<T>>;
  empty: ReactNode;
  children: (one: T) => ReactNode;
}

export function Cards<T>({ of, empty, children }: Props<T>) {
  return (
    <Shown of={of}>
      {(items) =>
        items.length ? (
          <Stack>
            {items.map(children)}
            <Pager of={of.turning} />
          </Stack>
        ) : (
          empty
        )
      }
    </Shown>
  );
}
