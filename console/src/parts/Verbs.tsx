// The small action buttons of a list item.

import { Button, Group } from "@mantine/core";

interface Words<Key extends string> {
  offered: Key[];
  verbs: Record<Key, { verb: string }>;
  name: string;
  ask: (key: Key) => void;
}

export function Verbs<Key extends string>({ offered, verbs, name, ask }: Words<Key>) {
  return (
    <Group gap="xs">
      {offered.map((key) => (
        <Button
          key={key}
          size="xs"
          variant="default"
          onClick={() => ask(key)}
          aria-label={`${verbs[key].verb}: ${name}`}
        >
          {verbs[key].verb}
        </Button>
      ))}
    </Group>
  );
}
