// The two names of a tenant or a project.

import { TextInput } from "@mantine/core";
import { type Named, named, renamed } from "./naming";

export function NamedFields({ draft, say }: { draft: Named; say: (draft: Named) => void }) {
  return (
    <>
      <TextInput
        label="Name"
        value={draft.name}
        onChange={(event) => say(renamed(draft, event.currentTarget.value))}
        data-autofocus
      />
      <TextInput
        label="Short name"
        description="For commands and sign-in: 3 to 40 small letters, digits and dashes. It stays."
        value={draft.slug}
        error={
          draft.slug && !named({ name: "x", slug: draft.slug })
            ? "It begins with a letter and ends with none of the dashes."
            : null
        }
        onChange={(event) => say({ ...draft, slug: event.currentTarget.value })}
      />
    </>
  );
}
