// Name and short name of a tenant or a project.

import { TextInput } from "@mantine/core";
import { type Named, named, renamed } from "./naming";

export function NamedFields({ draft, change }: { draft: Named; change: (draft: Named) => void }) {
  return (
    <>
      <TextInput
        label="Name"
        value={draft.name}
        onChange={(event) => change(renamed(draft, event.currentTarget.value))}
        data-autofocus
      />
      <TextInput
        label="Short name"
        description="Used in commands. Lowercase letters, digits and hyphens. Can't be changed later."
        value={draft.slug}
        error={
          draft.slug && !named({ name: "x", slug: draft.slug })
            ? "Use 3 to 40 lowercase letters, digits or hyphens. Start with a letter."
            : null
        }
        onChange={(event) => change({ ...draft, slug: event.currentTarget.value })}
      />
    </>
  );
}
