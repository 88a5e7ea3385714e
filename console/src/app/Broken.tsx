// A page that failed by itself: said like any other error, with a way on.

import { Box } from "@mantine/core";
import { useRouteError } from "react-router";
import { ProblemNote } from "../parts/ProblemNote";

export function Broken() {
  return (
    <Box component="main" p="xl" maw={700} mx="auto">
      <ProblemNote error={useRouteError()} again={() => window.location.reload()} />
    </Box>
  );
}
