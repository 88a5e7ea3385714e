// What was read is kept and shown at once; events say when to read it again (see live/).

import { QueryClient } from "@tanstack/react-query";
import { worthAnotherTry } from "./client";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 5_000, retry: worthAnotherTry, refetchOnWindowFocus: true },
    mutations: { retry: false },
  },
});
