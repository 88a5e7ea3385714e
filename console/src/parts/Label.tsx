// A word that is a name of the platform's, such as a role: set apart from sentences, never broken.

import { Badge } from "@mantine/core";

export function Label({ children }: { children: string }) {
  return (
    <Badge variant="default" radius="sm" tt="none" fw={500} miw="max-content">
      {children}
    </Badge>
  );
}
