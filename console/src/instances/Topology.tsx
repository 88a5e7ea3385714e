// The members on their machines, drawn: what everything hangs on stands above.

import "@xyflow/react/dist/base.css";
import { Box, Card, Group, Stack, Text } from "@mantine/core";
import { IconServer2 } from "@tabler/icons-react";
import { Background, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import type { Schemas } from "../api/client";
import { componentTitle, type Manifest } from "../catalog/manifest";
import { Dot } from "../parts/State";
import { toneOf, words } from "../parts/tone";
import { type Host, hostsOf } from "./members";

const WIDTH = 190;
const GAP = 26;
const LEVEL = 78;
const MOST = 48; // beyond that the table says more than a drawing

type HostNode = Node<{ host: Host; manifest: Manifest | undefined }, "host">;

export function Topology({
  instance,
  manifest,
}: {
  instance: Schemas["InstanceView"];
  manifest: Manifest | undefined;
}) {
  const hosts = useMemo(
    () => hostsOf(instance.members, instance.topology, manifest),
    [instance.members, instance.topology, manifest],
  );
  const { ref, width } = useWidth();
  const go = useNavigate();
  const drawn = useMemo(() => draw(hosts, manifest, width), [hosts, manifest, width]);
  if (hosts.length > MOST) return null;
  return (
    <Card p={0} ref={ref} style={{ overflow: "hidden" }}>
      <Box h={drawn.height} role="img" aria-label={said(hosts, manifest)} data-topology>
        {width > 0 && (
          <ReactFlow
            key={`${Math.round(width)}-${hosts.length}`}
            nodes={drawn.nodes}
            edges={drawn.edges}
            nodeTypes={NODE_TYPES}
            fitView
            fitViewOptions={{ padding: 0.12, maxZoom: 1 }}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            panOnDrag={false}
            zoomOnScroll={false}
            zoomOnPinch={false}
            zoomOnDoubleClick={false}
            preventScrolling={false}
            onNodeClick={(_, node) => {
              const [first] = node.data.host.members;
              if (first) go(`/projects/${instance.project_id}/instances/${instance.id}/members/${first.id}`);
            }}
            proOptions={{ hideAttribution: true }}
          >
            <Background gap={18} size={1} color="var(--line)" />
          </ReactFlow>
        )}
      </Box>
    </Card>
  );
}

/** Known before anything is painted, so that nothing jumps. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const frame = ref.current;
    if (!frame) return;
    const measure = () => setWidth(frame.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(frame);
    measure();
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

/** The drawing in words, for those who hear it. */
function said(hosts: Host[], manifest: Manifest | undefined): string {
  const each = hosts.map(
    (host) =>
      `${host.name}: ${host.members.map((one) => `${componentTitle(manifest, one.component_key)} ${words(one.state)}`).join(", ")}`,
  );
  return `Members on ${hosts.length} machines. ${each.join(". ")}.`;
}

function draw(hosts: Host[], manifest: Manifest | undefined, width: number) {
  const hubs = hosts.filter((host) => host.hub);
  const others = hosts.filter((host) => !host.hub);
  const across = Math.max(
    1,
    Math.min(Math.max(others.length, hubs.length), Math.floor((width - GAP) / (WIDTH + GAP)) || 1),
  );
  const rows = chunked(others, across);
  const nodes: HostNode[] = [];
  let y = 0;
  for (const row of [...(hubs.length ? [hubs] : []), ...rows]) {
    const start = -((row.length - 1) * (WIDTH + GAP)) / 2;
    row.forEach((host, place) => {
      nodes.push({
        id: host.id,
        type: "host",
        position: { x: start + place * (WIDTH + GAP), y },
        data: { host, manifest },
        initialWidth: WIDTH,
        initialHeight: 42 + host.members.length * 22,
      });
    });
    y += LEVEL + Math.max(...row.map((host) => host.members.length)) * 22;
  }
  const edges: Edge[] = hubs.flatMap((hub) =>
    others.map((other) => ({
      id: `${hub.id}-${other.id}`,
      source: hub.id,
      target: other.id,
      animated: other.members.some((one) => toneOf(one.state) === "busy"),
      style: { stroke: "var(--still)", strokeWidth: 1.2 },
    })),
  );
  return { nodes, edges, height: Math.min(460, y + 40) };
}

function chunked<T>(all: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, row) => all.slice(row * size, (row + 1) * size));
}

const hidden = { opacity: 0, pointerEvents: "none" } as const;

function HostBox({ data: { host, manifest } }: NodeProps<HostNode>) {
  return (
    <Box
      w={WIDTH}
      p="xs"
      style={{ background: "var(--surface)", border: "1px solid var(--line)", borderRadius: 12, cursor: "pointer" }}
    >
      <Handle type="target" position={Position.Top} style={hidden} />
      <Stack gap={5}>
        <Group gap={6} wrap="nowrap">
          <IconServer2 size={15} aria-hidden />
          <Text size="sm" fw={650} truncate>
            {host.name}
          </Text>
        </Group>
        {host.members.map((member) => (
          <Group key={member.id} gap={7} wrap="nowrap">
            <Dot tone={toneOf(member.state)} />
            <Text size="xs" truncate>
              {componentTitle(manifest, member.component_key)}{" "}
              <Text span c="dimmed" inherit>
                {words(member.state).toLowerCase()}
              </Text>
            </Text>
          </Group>
        ))}
      </Stack>
      <Handle type="source" position={Position.Bottom} style={hidden} />
    </Box>
  );
}

const NODE_TYPES = { host: HostBox };
