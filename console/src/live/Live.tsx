// While somebody looks at a project its events are followed, and what they make old is read again.

import { useDocumentVisibility } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { affectedBy } from "./affected";
import { follow, type Standing } from "./stream";

const TOGETHER_MS = 150; // events come in bunches; one reading is enough for all of them
const Context = createContext<Standing>("connecting");

export function useStanding(): Standing {
  return useContext(Context);
}

export function Live({ projectId, children }: { projectId: string; children: ReactNode }) {
  const client = useQueryClient();
  const [standing, setStanding] = useState<Standing>("connecting");
  const visible = useDocumentVisibility() !== "hidden"; // browsers open few connections: a hidden tab keeps none
  useEffect(() => {
    if (!visible) return;
    const stop = new AbortController();
    const old = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      const parts = [...old];
      old.clear();
      client.invalidateQueries({
        predicate: ({ queryKey }) => parts.some((part) => String(queryKey[1]).includes(part)),
      });
    };
    const heard = (type: string) => {
      for (const part of affectedBy(type)) old.add(part);
      timer ??= setTimeout(refresh, TOGETHER_MS);
    };
    follow(
      projectId,
      { heard: (event) => heard(event.type), missed: () => client.invalidateQueries(), standing: setStanding },
      stop.signal,
    );
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [projectId, client, visible]);
  return <Context value={standing}>{children}</Context>;
}
