// The operations of this project, running and finished.

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
      about="Deployments and changes of instances, with their steps and results."
      actions={
        <SegmentedControl
          size="sm"
          value={which}
          onChange={(show) => setSearch({ show }, { replace: true })}
          data={[
            { value: "all", label: "All" },
            { value: "live", label: "Running" },
            { value: "ended", label: "Finished" },
          ]}
          aria-label="Which operations"
        />
      }
    >
      <OperationsList projectId={useProjectId()} filter={{ history, batch_id: search.get("batch") ?? undefined }} />
    </Page>
  );
}
