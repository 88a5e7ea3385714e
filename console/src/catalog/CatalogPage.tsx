// The apps this project can deploy, and why it cannot deploy the others.

import { Badge, Button, Card, Group, List, SimpleGrid, Stack, Text, ThemeIcon } from "@mantine/core";
import { IconApps, IconLock, IconRocket } from "@tabler/icons-react";
import { Link } from "react-router";
import { queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Empty, Page, Shown } from "../parts/Page";
import { sentence } from "../parts/tone";
import { Refused } from "../session/Refused";
import { useMay } from "../session/session";
import type { Manifest } from "./manifest";

export function CatalogPage() {
  const project_id = useProjectId();
  const catalog = queries.useQuery("get", "/v1/projects/{project_id}/catalog", { params: { path: { project_id } } });
  return (
    <Page title="Catalog" about="Apps you can deploy on this project's machines.">
      <Shown of={catalog}>
        {({ items }) =>
          items.length ? (
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              {items.map((entry) => (
                <Entry key={entry.app.slug} entry={entry} projectId={project_id} />
              ))}
            </SimpleGrid>
          ) : (
            <Empty icon={<IconApps size={32} />} title="No apps yet">
              Apps appear here once a platform administrator publishes them.
            </Empty>
          )
        }
      </Shown>
    </Page>
  );
}

function Entry({ entry, projectId }: { entry: Schemas["CatalogEntry"]; projectId: string }) {
  const manifest = entry.manifest as unknown as Manifest | null;
  const may = useMay({ project_id: projectId });
  return (
    <Card>
      <Stack gap="sm" h="100%" justify="space-between">
        <Stack gap="sm">
          <Group justify="space-between" wrap="nowrap" align="flex-start">
            <Group wrap="nowrap" gap="sm">
              <ThemeIcon size={40} radius="md" variant="light">
                <IconApps size={22} />
              </ThemeIcon>
              <div>
                <Text fw={650} size="lg" component="h2" m={0}>
                  {manifest?.title ?? entry.app.name}
                </Text>
                <Text size="xs" c="dimmed">
                  {entry.version ? `Version ${entry.version}` : "No published version"}
                </Text>
              </div>
            </Group>
            {entry.state === "deprecated" && (
              <Badge variant="default" radius="sm">
                Deprecated
              </Badge>
            )}
          </Group>
          <Text size="sm">{manifest?.summary ?? entry.app.description}</Text>
          {manifest && (
            <List size="sm" c="dimmed" spacing={2}>
              {manifest.topologies.map((one) => (
                <List.Item key={one.key}>{one.title}</List.Item>
              ))}
            </List>
          )}
          {entry.warnings?.map((warning) => (
            <Text key={warning} size="sm" c="var(--warn)">
              {warning}
            </Text>
          ))}
        </Stack>
        {entry.deployable ? (
          <Group justify="space-between">
            <Text size="sm" c="dimmed">
              {sentence(entry.reason)}
            </Text>
            {may("apps.instance.create") ? (
              <Button
                component={Link}
                to={`/projects/${projectId}/deploy/${entry.app.slug}`}
                leftSection={<IconRocket size={17} />}
              >
                Deploy
              </Button>
            ) : (
              <Refused permission="apps.instance.create" place={{ project_id: projectId }}>
                Deploy
              </Refused>
            )}
          </Group>
        ) : (
          <Group gap={8} wrap="nowrap" align="flex-start">
            <IconLock size={17} color="var(--warn)" style={{ flex: "none", marginTop: 2 }} aria-hidden />
            <Text size="sm">{sentence(entry.reason)}</Text>
          </Group>
        )}
      </Stack>
    </Card>
  );
}
