// The rules of a policy or an entitlement: allowed and denied values per field.

import { Box, Checkbox, Select, Stack, TagsInput, Text } from "@mantine/core";
import { useState } from "react";
import { type Draft, FIELDS, type Field, type Lists } from "./fields";
import { useKnown } from "./known";

const NONE: Lists = { only: null, deny: [] };

export function RulesForm({
  draft,
  change,
  without = [],
}: {
  draft: Draft;
  change: (draft: Draft) => void;
  without?: Field[];
}) {
  const known = useKnown();
  const offered = FIELDS.filter(([field]) => !without.includes(field));
  const [opened, open] = useState<Field[]>(Object.keys(draft) as Field[]);
  const shown = offered.filter(([field]) => opened.includes(field));
  const rest = offered.filter(([field]) => !opened.includes(field));
  return (
    <Stack gap="md">
      {shown.map(([field, title]) => (
        <OneField
          key={field}
          title={title}
          names={known(field)}
          lists={draft[field] ?? NONE}
          change={(lists) => change({ ...draft, [field]: lists })}
        />
      ))}
      {rest.length > 0 && (
        <Select
          label="Restrict to (optional)"
          placeholder={shown.length ? "Add another field" : "Choose a field"}
          data={rest.map(([value, label]) => ({ value, label }))}
          value={null}
          onChange={(field) => field && open([...opened, field as Field])}
        />
      )}
    </Stack>
  );
}

function OneField(props: { title: string; names: string[]; lists: Lists; change: (lists: Lists) => void }) {
  const { title, names, lists, change } = props;
  return (
    <Box component="fieldset" m={0} p="md" style={{ border: "1px solid var(--line)", borderRadius: 12 }}>
      <Text component="legend" size="sm" fw={600} px={6}>
        {title}
      </Text>
      <Stack gap="sm">
        <Checkbox
          label="Allow only selected"
          checked={lists.only !== null}
          onChange={(event) => change({ ...lists, only: event.currentTarget.checked ? [] : null })}
        />
        {lists.only !== null && (
          <TagsInput
            label={`${title}: allowed`}
            description={lists.only.length ? undefined : "None is allowed while this list is empty."}
            placeholder={names.length ? "Choose or type a name" : "Type a name and press Enter"}
            data={names}
            value={lists.only}
            onChange={(only) => change({ ...lists, only })}
          />
        )}
        <TagsInput
          label={`${title}: denied`}
          placeholder={names.length ? "Choose or type a name" : "Type a name and press Enter"}
          data={names}
          value={lists.deny}
          onChange={(deny) => change({ ...lists, deny })}
        />
      </Stack>
    </Box>
  );
}
