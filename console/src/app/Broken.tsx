// A page that crashed: shown like any other error, with a reload button.

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
