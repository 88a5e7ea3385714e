// Answers are cached and shown at once; events tell when to read them again (see live/).

import { QueryClient } from "@tanstack/react-query";
import { worthAnotherTry } from "./client";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 5_000, retry: worthAnotherTry, refetchOnWindowFocus: true },
    mutations: { retry: false },
  },
});
