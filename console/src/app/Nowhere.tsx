import { Button } from "@mantine/core";
import { IconMapPin } from "@tabler/icons-react";
import { Link } from "react-router";
import { Empty, Page } from "../parts/Page";

export function Nowhere() {
  return (
    <Page title="Page not found">
      <Empty
        icon={<IconMapPin size={32} />}
        title="This page does not exist"
        action={
          <Button component={Link} to="/">
            Go to start page
          </Button>
        }
      >
        The link may be outdated or incomplete.
      </Empty>
    </Page>
  );
}
