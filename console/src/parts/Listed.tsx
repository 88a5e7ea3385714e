// A list as a table in its frame: what its columns are called, and which of them only a wider window shows.

import { Card, Table } from "@mantine/core";
import type { ReactNode } from "react";
import type { Turning } from "../api/usePages";
import { Pager } from "./Page";
import { Scroll } from "./Scroll";

export type Column = string | [title: string, visibleFrom: "sm" | "md" | "lg"];
export const ACTIONS: Column = ""; // the column of buttons, which has no words above it

interface Props {
  label: string;
  columns: Column[];
  turning?: Turning;
  above?: ReactNode; // within the frame
  hover?: boolean; // rows that can be clicked light up
  children: ReactNode; // rows
}

export function Listed({ label, columns, turning, above, hover, children }: Props) {
  return (
    <Card p={0}>
      {above}
      <Scroll label={label}>
        <Table highlightOnHover={hover}>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Head key={String(column)} column={column} />
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>{children}</Table.Tbody>
        </Table>
      </Scroll>
      {turning && <Pager of={turning} />}
    </Card>
  );
}

function Head({ column }: { column: Column }) {
  if (column === ACTIONS) return <Table.Th aria-label="Actions" w={48} />;
  const [title, from] = typeof column === "string" ? [column, undefined] : column;
  return <Table.Th visibleFrom={from}>{title}</Table.Th>;
}
