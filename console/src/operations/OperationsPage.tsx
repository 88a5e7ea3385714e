// Everything that was asked for in this project: what is under way, and what has ended.

import { SegmentedControl } from "@mantine/core";
import { useSearchParams } from "react-router";
import { useProjectId } from "../app/place";
import { Page } from "../parts/Page";
import { OperationsList } from "./OperationsList";

export function OperationsPage() {
  const [search, setSearch] = useSearchParams();
  const which = search.get("show") ?? "all";
  const history = which === "all" ? undefined : which === "ended";
  return (
    <Page
      title="Operations"
      about="Whatever is asked for is an operation, with its steps and its end."
      actions={
        <SegmentedControl
          size="sm"
          value={which}
          onChange={(show) => setSearch({ show }, { replace: true })}
          data={[
            { value: "all", label: "All" },
            { value: "live", label: "Under way" },
            { value: "ended", label: "Ended" },
          ]}
          aria-label="Which operations"
        />
      }
    >
      <OperationsList projectId={useProjectId()} filter={{ history, batch_id: search.get("batch") ?? undefined }} />
    </Page>
  );
}
