// What all policy levels together allow, and which level decided.

import { Autocomplete, Box, Button, Card, Group, Select, Stack, Table, Text } from "@mantine/core";
import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { queries, type Schemas } from "../api/client";
import { Shown } from "../parts/Page";
import { Scroll } from "../parts/Scroll";
import { sentence } from "../parts/tone";
import { FIELDS, type Field, fieldTitle } from "./fields";
import { useKnown } from "./known";

interface Asking {
  projectId: string;
  app: string | null;
}

export function Effective({ projectId, app }: Asking) {
  const params = { path: { project_id: projectId }, query: { app_slug: app ?? undefined } };
  const found = queries.useQuery("get", "/v1/projects/{project_id}/policy/effective", { params });
  return (
    <Card p={0}>
      <Shown of={found}>
        {({ fields }) => (
          <Scroll label="Allowed values">
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Field</Table.Th>
                  <Table.Th>Allowed</Table.Th>
                  <Table.Th visibleFrom="sm">Denied</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {fields.map((one) => (
                  <Row key={one.field} one={one} />
                ))}
              </Table.Tbody>
            </Table>
          </Scroll>
        )}
      </Shown>
    </Card>
  );
}

function Row({ one }: { one: Schemas["FieldView"] }) {
  const good = one.values.filter((value) => value.allowed);
  const bad = one.values.filter((value) => !value.allowed);
  const closed = one.only !== null;
  return (
    <Table.Tr style={{ verticalAlign: "top" }}>
      <Table.Td>
        <Text size="sm" fw={600}>
          {fieldTitle(one.field)}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{closed ? one.only?.join(", ") || "None" : good.map((each) => each.value).join(", ")}</Text>
        {!closed && (
          <Text size="sm" c="dimmed">
            {bad.length ? "Everything else" : "Not restricted"}
          </Text>
        )}
        <Box hiddenFrom="sm" mt={4}>
          <Refusals bad={bad} others={one.others} />
        </Box>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Refusals bad={bad} others={one.others} />
      </Table.Td>
    </Table.Tr>
  );
}

function Refusals({ bad, others }: { bad: Schemas["RulingView"][]; others: Schemas["RulingView"] }) {
  return (
    <Stack gap={4}>
      {bad.map((each) => (
        <Text key={each.value} size="sm">
          <span className="mono">{each.value}</span>{" "}
          <Text span c="dimmed" inherit>
            {sentence(each.reason)}
          </Text>
        </Text>
      ))}
      {!others.allowed && (
        <Text size="sm" c="dimmed">
          {sentence(others.reason)}
        </Text>
      )}
    </Stack>
  );
}

export function Ask({ projectId, app }: Asking) {
  const [field, setField] = useState<Field>("regions");
  const known = useKnown();
  const [value, setValue] = useState("");
  const [asked, ask] = useState<{ field: string; value: string } | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    ask({ field, value: value.trim() });
  };
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="sm">
        Check policy
      </Text>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <Select
            label="Field"
            data={FIELDS.map(([key, title]) => ({ value: key, label: title }))}
            value={field}
            onChange={(chosen) => chosen && setField(chosen as Field)}
            allowDeselect={false}
            w={{ base: "100%", sm: 220 }}
          />
          <Autocomplete
            label="Name"
            placeholder="eu-west"
            data={known(field)}
            limit={12}
            value={value}
            onChange={setValue}
            w={{ base: "100%", sm: 260 }}
          />
          <Button type="submit" disabled={!value.trim()}>
            Check
          </Button>
        </Group>
      </form>
      {asked && <Ruling projectId={projectId} app={app} {...asked} />}
    </Card>
  );
}

function Ruling({ projectId, app, field, value }: Asking & { field: string; value: string }) {
  const query = { field, value, app_slug: app ?? undefined };
  const found = queries.useQuery("get", "/v1/projects/{project_id}/policy/explain", {
    params: { path: { project_id: projectId }, query },
  });
  return (
    <Stack mt="md">
      <Shown of={found} lines={1}>
        {(ruling) => (
          <Group gap="sm" wrap="nowrap" align="flex-start" role="status">
            {ruling.allowed ? (
              <IconCircleCheck size={22} color="var(--good)" aria-hidden style={{ flex: "none" }} />
            ) : (
              <IconCircleX size={22} color="var(--bad)" aria-hidden style={{ flex: "none" }} />
            )}
            <div>
              <Text fw={600}>
                {value} is {ruling.allowed ? "allowed" : "not allowed"}.
              </Text>
              <Text size="sm">{sentence(ruling.reason)}</Text>
              {ruling.level && (
                <Text size="sm" c="dimmed">
                  Decided by the {ruling.level} policy.
                </Text>
              )}
            </div>
          </Group>
        )}
      </Shown>
    </Stack>
  );
}
