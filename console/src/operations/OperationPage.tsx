// One operation: its live steps, its result, and the actions that follow.

import { Anchor, Box, Button, Card, Group, Progress, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { Actions } from "../actions/Actions";
import { operationOffers } from "../actions/offers";
import { queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Certificates } from "../findings/Certificates";
import { Evidence } from "../findings/Evidence";
import { Forecast } from "../findings/Forecast";
import { memberName } from "../instances/members";
import { useInstance } from "../instances/useInstance";
import { useStanding } from "../live/Live";
import { Facts, Value } from "../parts/Facts";
import { Page, Shown } from "../parts/Page";
import { CorrelationLine } from "../parts/ProblemNote";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { lasted } from "../parts/time";
import { useMe } from "../session/session";
import { kindName, type Operation } from "./kinds";
import { Steps } from "./Steps";

export function OperationPage() {
  const project_id = useProjectId();
  const { operationId = "" } = useParams();
  const asked = queries.useQuery(
    "get",
    "/v1/projects/{project_id}/operations/{operation_id}",
    { params: { path: { project_id, operation_id: operationId } } },
    { refetchInterval: ({ state }) => (state.data && !state.data.finished_at ? 15_000 : false) },
  );
  const instance = useInstance(project_id, asked.data?.instance_id);
  const member = queries.useQuery(
    "get",
    "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}",
    {
      params: {
        path: { project_id, instance_id: asked.data?.instance_id ?? "", member_id: asked.data?.member_id ?? "" },
      },
    },
    { enabled: Boolean(asked.data?.member_id) },
  );
  const one = asked.data;
  if (!one) {
    return (
      <Page title="Operation">
        <Shown of={asked}>{() => null}</Shown>
      </Page>
    );
  }
  const name = instance.data?.name ?? "";
  const about = one.member_id ? (member.data ? `${memberName(member.data)} on ${member.data.node_name}` : "") : name;
  return (
    <Page
      title={`${kindName(one.kind)} ${about}`}
      crumb={
        <Anchor component={Link} to={`/projects/${project_id}/instances/${one.instance_id}`} inherit>
          {name || "Instance"}
        </Anchor>
      }
      about={
        <Group gap="md" component="span">
          <State state={one.status} noun="operation" />
          <span>
            started <Time at={one.created_at} />
          </span>
          {one.started_at && one.finished_at && <span>took {lasted(one.started_at, one.finished_at)}</span>}
        </Group>
      }
      actions={
        instance.data && (
          <Actions
            offers={operationOffers(one.available_actions)}
            target={{ projectId: project_id, instance: instance.data, operationId: one.id }}
            kind="operation"
            name={name}
          />
        )
      }
    >
      <Standing one={one} instance={instance.data} />
      {one.error && <Failure one={one} />}
      {one.error && <Evidence detail={one.adapter_detail} />}
      {!one.finished_at && <Forecast detail={one.adapter_detail} />}
      {one.finished_at && <Certificates projectId={project_id} of={{ operation_id: one.id }} />}
      <Steps operation={one} />
      <Details one={one} />
    </Page>
  );
}

function Standing({ one, instance }: { one: Operation; instance: Schemas["InstanceView"] | undefined }) {
  const lost = useStanding() === "lost";
  if (one.status === "succeeded") {
    return (
      <Group
        gap="sm"
        wrap="nowrap"
        p="md"
        style={{ background: "var(--good-wash)", borderRadius: 14, border: "1px solid var(--line)" }}
      >
        <IconCircleCheck size={22} color="var(--good)" aria-hidden style={{ flex: "none" }} />
        <div style={{ flex: 1, minWidth: 0 }}>
          <Text fw={600}>Done.</Text>
          <Text size="sm">
            {instance?.state === "deleted"
              ? "Removed from all machines. The cleanup of each is verified below."
              : one.member_id
                ? one.progress.message
                : instance?.health.sentence}
          </Text>
        </div>
        {instance && instance.state !== "deleted" && (
          <Button
            component={Link}
            to={`/projects/${instance.project_id}/instances/${instance.id}`}
            variant={one.kind === "deploy" ? "filled" : "default"}
            style={{ flex: "none" }}
          >
            Open {instance.name}
          </Button>
        )}
      </Group>
    );
  }
  if (one.finished_at) return null;
  return (
    <Card>
      <Group justify="space-between" mb={8}>
        <Text fw={600} aria-live="polite">
          {one.progress.message || "Queued. No operator has picked it up yet."}
        </Text>
        <Text size="sm" c="dimmed">
          {one.progress.of > 0 ? `${one.progress.step} of ${one.progress.of}` : ""}
        </Text>
      </Group>
      <Progress
        value={one.progress.percent}
        size="lg"
        radius="xl"
        animated
        aria-label={`${one.progress.percent} percent done`}
      />
      {lost && (
        <Text size="sm" c="var(--warn)" mt="sm" role="status">
          Connection lost. The operation continues; this page updates once the connection is back.
        </Text>
      )}
      {one.cancel_requested && (
        <Text size="sm" c="var(--warn)" mt="sm">
          Canceling. It stops at the next safe point.
        </Text>
      )}
      {one.stuck && (
        <Text size="sm" c="var(--warn)" mt="sm">
          {one.stuck.message} <Time at={one.stuck.since} />
        </Text>
      )}
    </Card>
  );
}

function Failure({ one }: { one: Operation }) {
  if (!one.error) return null;
  return (
    <Box
      p="lg"
      role="alert"
      style={{ background: "var(--bad-wash)", borderRadius: 14, border: "1px solid var(--line)" }}
    >
      <Group align="flex-start" gap="sm" wrap="nowrap">
        <IconAlertTriangle size={22} color="var(--bad)" aria-hidden style={{ flex: "none", marginTop: 1 }} />
        <Stack gap={6} style={{ minWidth: 0 }}>
          <Text fw={650}>{one.error.message}</Text>
          <Text size="sm">
            <b>What to do: </b>
            {one.error.way_out}
          </Text>
          <Text size="xs" c="dimmed" className="mono">
            {one.error.code}
            {one.error.retryable ? " · Retry may help" : ""}
          </Text>
          <CorrelationLine id={one.correlation_id} />
        </Stack>
      </Group>
    </Box>
  );
}

function Details({ one }: { one: Operation }) {
  const me = useMe().data;
  const sections = Object.entries({
    Parameters: one.params,
    "App details": one.adapter_detail,
    Checks: one.evidence,
  }).filter(([, value]) => value && Object.keys(value).length > 0);
  const rows: [string, React.ReactNode][] = [
    [
      "Started by",
      one.requested_by === me?.principal.id ? (
        "you"
      ) : (
        <span key="by" className="mono">
          {one.requested_by}
        </span>
      ),
    ],
    ["Operator", one.claimed_by ? `${one.claimed_by} (claim ${one.claim_epoch})` : "Not picked up yet"],
    ["Attempts", one.attempts],
    ["App", `${one.target.app_slug} ${one.target.version}`],
  ];
  if (one.retry_of) {
    rows.push([
      "Retry of",
      <Anchor key="of" component={Link} inherit to={`../operations/${one.retry_of}`} relative="path">
        {one.retry_of}
      </Anchor>,
    ]);
  }
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="sm">
        Details
      </Text>
      <Stack gap="md">
        <Facts rows={[...rows, ["Trace ID", <CorrelationLine key="cor" bare id={one.correlation_id} />]]} />
        {sections.map(([title, value]) => (
          <details key={title}>
            <summary>
              <Text span size="sm" fw={600}>
                {title}
              </Text>
            </summary>
            <Box pt="sm">
              <Value value={value} />
            </Box>
          </details>
        ))}
      </Stack>
    </Card>
  );
}
