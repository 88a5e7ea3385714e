// The frame of every page: title, loading, error and empty states.

import { Box, Button, Card, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import type { Turning } from "../api/usePages";
import { ProblemNote } from "./ProblemNote";

interface Asked<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

export function Page({
  title,
  crumb,
  about,
  actions,
  children,
}: {
  title: string;
  crumb?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · GPUaaS`;
  }, [title]);
  return (
    <Stack gap="lg" maw={1180} mx="auto" w="100%">
      <Group justify="space-between" align="flex-end" gap="md">
        <Box style={{ minWidth: 0 }}>
          {crumb && (
            <Text size="sm" c="dimmed" mb={2} component="div">
              {crumb}
            </Text>
          )}
          <Title order={1} fz={26} style={{ overflowWrap: "anywhere" }}>
            {title}
          </Title>
          {about && (
            <Text c="dimmed" size="sm" mt={4} component="div" maw={680}>
              {about}
            </Text>
          )}
        </Box>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

/** The data, the error, or a skeleton. Data stays on the screen while it is refreshed. */
export function Shown<T>({
  of,
  lines = 4,
  children,
}: {
  of: Asked<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <ProblemNote error={of.error} again={() => of.refetch()} />;
  return <Waiting lines={lines} />;
}

export function Waiting({ lines = 4 }: { lines?: number }) {
  return (
    <Stack gap="sm" aria-busy="true" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: skeleton lines have no ids
        <Skeleton key={line} height={44} radius="md" />
      ))}
    </Stack>
  );
}

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Card ta="center" py={48}>
      <Stack align="center" gap="xs">
        <Box c="dimmed" aria-hidden>
          {icon}
        </Box>
        <Text fw={600}>{title}</Text>
        {children && (
          <Text c="dimmed" size="sm" maw={460}>
            {children}
          </Text>
        )}
        {action && <Box mt="xs">{action}</Box>}
      </Stack>
    </Card>
  );
}

/** Previous and next of a long list; hidden while there is one page. */
export function Pager({ of: { number, more, busy, next, back } }: { of: Turning }) {
  const frame = useRef<HTMLDivElement>(null);
  if (number === 1 && !more) return null;
  const turn = (act: () => void) => () => {
    act();
    frame.current?.parentElement?.scrollIntoView({ block: "nearest" });
  };
  return (
    <Group justify="center" gap="md" p="sm" component="nav" aria-label="Pages of this list" ref={frame}>
      <Button variant="default" size="xs" disabled={number === 1} onClick={turn(back)}>
        Previous
      </Button>
      <Text size="sm" c="dimmed" aria-live="polite">
        Page {number}
      </Text>
      <Button variant="default" size="xs" disabled={!more} loading={busy} onClick={turn(next)}>
        Next
      </Button>
    </Group>
  );
}
