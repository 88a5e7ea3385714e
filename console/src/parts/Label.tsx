// A badge for a name such as a role; it never wraps.

import { Badge } from "@mantine/core";

export function Label({ children }: { children: string }) {
  return (
    <Badge variant="default" radius="sm" tt="none" fw={500} miw="max-content">
      {children}
    </Badge>
  );
}
