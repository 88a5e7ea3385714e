import { Button } from "@mantine/core";
import { IconMapPin } from "@tabler/icons-react";
import { Link } from "react-router";
import { Empty, Page } from "../parts/Page";

export function Nowhere() {
  return (
    <Page title="There is no such page">
      <Empty
        icon={<IconMapPin size={32} />}
        title="Nothing is at this address"
        action={
          <Button component={Link} to="/">
            Go to the start
          </Button>
        }
      >
        The link may be old, or a part of it is missing.
      </Empty>
    </Page>
  );
}
