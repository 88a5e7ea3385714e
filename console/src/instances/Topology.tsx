// A diagram of the members on their machines; single-instance components are on top.

import "@xyflow/react/dist/base.css";
import { Box, Card, Group, Stack, Text } from "@mantine/core";
import { IconServer2, IconStack2 } from "@tabler/icons-react";
import { Background, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import type { Manifest } from "../catalog/manifest";
import { displayName } from "../parts/names";
import { Waiting } from "../parts/Page";
import { Dot } from "../parts/State";
import { toneOf } from "../parts/tone";
import { type Block, componentBlocks, describe, machineBlocks } from "./members";
import { type Instance, useMembers } from "./useInstance";

const WIDTH = 190;
const GAP = 26;
const LEVEL = 78;
const MOST = 48; // machines; beyond that one box per component with the number of members in each state

type BlockNode = Node<{ block: Block }, "block">;

export function Topology({ instance, manifest }: { instance: Instance; manifest: Manifest | undefined }) {
  const found = useMembers(instance, instance.state === "deleted");
  const { member_counts, members_total, topology } = instance;
  const blocks = useMemo(
    () =>
      members_total > MOST
        ? componentBlocks(member_counts, topology, manifest)
        : machineBlocks(found.data ?? [], topology, manifest),
    [member_counts, members_total, found.data, topology, manifest],
  );
  if (!blocks.length) return <Waiting lines={3} />;
  return <Drawing blocks={blocks} at={`/projects/${instance.project_id}/instances/${instance.id}/members`} />;
}

function Drawing({ blocks, at }: { blocks: Block[]; at: string }) {
  const { ref, width } = useWidth();
  const go = useNavigate();
  const drawn = useMemo(() => draw(blocks, width), [blocks, width]);
  return (
    <Card p={0} ref={ref} style={{ overflow: "hidden" }}>
      <Box h={drawn.height} role="img" aria-label={describe(blocks)} data-topology>
        {width > 0 && (
          <ReactFlow
            key={`${Math.round(width)}-${blocks.length}`}
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
            onNodeClick={(_, { data }) => data.block.member && go(`${at}/${data.block.member}`)}
            proOptions={{ hideAttribution: true }}
          >
            <Background gap={18} size={1} color="var(--line)" />
          </ReactFlow>
        )}
      </Box>
    </Card>
  );
}

/** Measured before the first paint, so that the layout does not shift. */
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

function draw(blocks: Block[], width: number) {
  const hubs = blocks.filter((block) => block.hub);
  const others = blocks.filter((block) => !block.hub);
  const across = Math.max(
    1,
    Math.min(Math.max(others.length, hubs.length), Math.floor((width - GAP) / (WIDTH + GAP)) || 1),
  );
  const rows = chunked(others, across);
  const nodes: BlockNode[] = [];
  let y = 0;
  for (const row of [...(hubs.length ? [hubs] : []), ...rows]) {
    const start = -((row.length - 1) * (WIDTH + GAP)) / 2;
    row.forEach((block, place) => {
      nodes.push({
        id: block.id,
        type: "block",
        position: { x: start + place * (WIDTH + GAP), y },
        data: { block },
        initialWidth: WIDTH,
        initialHeight: 42 + block.lines.length * 22,
      });
    });
    y += LEVEL + Math.max(...row.map((block) => block.lines.length)) * 22;
  }
  const edges: Edge[] = hubs.flatMap((hub) =>
    others.map((other) => ({
      id: `${hub.id}-${other.id}`,
      source: hub.id,
      target: other.id,
      animated: other.lines.some((line) => toneOf(line.state) === "busy"),
      style: { stroke: "var(--still)", strokeWidth: 1.2 },
    })),
  );
  return { nodes, edges, height: Math.min(460, y + 40) };
}

function chunked<T>(all: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, row) => all.slice(row * size, (row + 1) * size));
}

const hidden = { opacity: 0, pointerEvents: "none" } as const;

function BlockBox({ data: { block } }: NodeProps<BlockNode>) {
  const Icon = block.machine ? IconServer2 : IconStack2;
  return (
    <Box
      w={WIDTH}
      p="xs"
      style={{
        background: "var(--surface)",
        border: "1px solid var(--line)",
        borderRadius: 12,
        cursor: block.member ? "pointer" : "default",
      }}
    >
      <Handle type="target" position={Position.Top} style={hidden} />
      <Stack gap={5}>
        <Group gap={6} wrap="nowrap">
          <Icon size={15} style={{ flex: "none" }} aria-hidden />
          <Text size="sm" fw={650} truncate>
            {block.title}
          </Text>
        </Group>
        {block.lines.map((line) => (
          <Group key={line.id} gap={7} wrap="nowrap">
            <Dot tone={toneOf(line.state)} />
            <Text size="xs" truncate>
              {line.text}{" "}
              <Text span c="dimmed" inherit>
                {displayName(line.state).toLowerCase()}
              </Text>
            </Text>
          </Group>
        ))}
      </Stack>
      <Handle type="source" position={Position.Bottom} style={hidden} />
    </Box>
  );
}

const NODE_TYPES = { block: BlockBox };
