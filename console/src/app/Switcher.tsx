// Switches projects, grouped by tenant, and stays on the same kind of page.

import { Box, Button, Menu, Text } from "@mantine/core";
import { IconSelector } from "@tabler/icons-react";
import { useLocation, useNavigate } from "react-router";
import type { Me } from "../session/session";
import { usePlace } from "./place";

export function Switcher({ me }: { me: Me }) {
  const { project, tenant } = usePlace();
  const go = useNavigate();
  const { pathname } = useLocation();
  if (!me.projects.length) return <Text fw={600}>GPUaaS</Text>;
  const page = /^\/projects\/[^/]+\/([a-z-]+)/.exec(pathname)?.[1] ?? "instances";
  const kept = page === "deploy" ? "catalog" : page;
  return (
    <Menu position="bottom-start" width={260}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          px="xs"
          rightSection={<IconSelector size={15} />}
          title="Switch project"
          styles={{ label: { minWidth: 0 } }}
        >
          <Box ta="left" style={{ lineHeight: 1.2, minWidth: 0 }}>
            <Text size="sm" fw={600} c="var(--mantine-color-text)" truncate maw={{ base: 120, sm: 220 }}>
              {project?.name ?? "Select project"}
            </Text>
            <Text size="xs" c="dimmed" truncate maw={{ base: 120, sm: 220 }}>
              {tenant?.name}
            </Text>
          </Box>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {me.tenants.map((one) => (
          <Box key={one.id}>
            <Menu.Label>{one.name}</Menu.Label>
            {me.projects
              .filter((mine) => mine.tenant_id === one.id)
              .map((mine) => (
                <Menu.Item
                  key={mine.id}
                  fw={mine.id === project?.id ? 600 : 400}
                  onClick={() => go(`/projects/${mine.id}/${kept}`)}
                >
                  {mine.name}
                </Menu.Item>
              ))}
            {me.more_projects && (
              <Menu.Item c="dimmed" onClick={() => go(`/tenants/${one.id}/projects`)}>
                All projects of {one.name}
              </Menu.Item>
            )}
          </Box>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
