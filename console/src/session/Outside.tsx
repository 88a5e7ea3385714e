// The frame of pages that need no sign-in.

import { Box, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { Logo } from "../app/Logo";

export function Outside({ title, tab, children }: { title: string; tab: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${tab} · GPUaaS`;
  }, [tab]);
  return (
    <Box component="main" mih="100vh" p="md" style={{ display: "grid", placeItems: "center" }}>
      <Stack w="100%" maw={400} gap="lg">
        <Stack align="center" gap="xs">
          <Logo size={44} />
          <Title order={1} fz={24} ta="center">
            {title}
          </Title>
        </Stack>
        {children}
      </Stack>
    </Box>
  );
}
