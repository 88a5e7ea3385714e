// A table in a card: its column titles, and which columns need a wider window.

import { Card, Table } from "@mantine/core";
import type { ReactNode } from "react";
import type { Turning } from "../api/usePages";
import { Pager } from "./Page";
import { Scroll } from "./Scroll";

export type Column = string | [title: string, visibleFrom: "sm" | "md" | "lg"];
export const ACTIONS: Column = ""; // the column of buttons

interface Props {
  label: string;
  columns: Column[];
  turning?: Turning;
  above?: ReactNode; // within the frame
  hover?: boolean; // for rows that can be clicked
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
