// Follows events while the tab is visible, and refreshes what they make out of date.

import { useDocumentVisibility } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { affectedBy } from "./affected";
import { followShared } from "./shared";
import type { PlatformEvent, Source, Standing } from "./stream";

const TOGETHER_MS = 150; // events come in bursts; one refresh is enough for all of them
const Context = createContext<Standing>("connecting");

export function useStanding(): Standing {
  return useContext(Context);
}

interface Props {
  tenantId?: string; // the whole tenant, where the user may read its events
  projectId?: string;
  children: ReactNode;
}

export function Live({ tenantId, projectId, children }: Props) {
  const client = useQueryClient();
  const [standing, setStanding] = useState<Standing>("connecting");
  const visible = useDocumentVisibility() !== "hidden"; // browsers open few connections: a hidden tab keeps none
  useEffect(() => {
    const source: Source | null = tenantId ? { tenant_id: tenantId } : projectId ? { project_id: projectId } : null;
    if (!visible || !source) return;
    const stop = new AbortController();
    const outdated = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      const paths = new Set(outdated);
      outdated.clear();
      client.invalidateQueries({ predicate: ({ queryKey }) => paths.has(String(queryKey[1])) });
    };
    const heard = ({ type, data }: PlatformEvent) => {
      for (const path of affectedBy(type, Boolean(data.project_id) && data.project_id !== projectId))
        outdated.add(path);
      timer ??= setTimeout(refresh, TOGETHER_MS);
    };
    followShared(source, { heard, missed: () => client.invalidateQueries(), standing: setStanding }, stop.signal);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [tenantId, projectId, client, visible]);
  return <Context value={standing}>{children}</Context>;
}
