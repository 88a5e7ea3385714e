// The rules of a policy or an entitlement, field by field: nothing but these, or never these.

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
          say={(lists) => change({ ...draft, [field]: lists })}
        />
      ))}
      {rest.length > 0 && (
        <Select
          label="Narrow"
          description={shown.length ? "Another field." : "What this is about."}
          placeholder="Choose a field"
          data={rest.map(([value, label]) => ({ value, label }))}
          value={null}
          onChange={(field) => field && open([...opened, field as Field])}
        />
      )}
    </Stack>
  );
}

function OneField(props: { title: string; names: string[]; lists: Lists; say: (lists: Lists) => void }) {
  const { title, names, lists, say } = props;
  return (
    <Box component="fieldset" m={0} p="md" style={{ border: "1px solid var(--line)", borderRadius: 12 }}>
      <Text component="legend" size="sm" fw={600} px={6}>
        {title}
      </Text>
      <Stack gap="sm">
        <Checkbox
          label="Only some"
          checked={lists.only !== null}
          onChange={(event) => say({ ...lists, only: event.currentTarget.checked ? [] : null })}
        />
        {lists.only !== null && (
          <TagsInput
            label={`${title}: only these`}
            description={lists.only.length ? undefined : "As it is, none of them is allowed."}
            placeholder={names.length ? "Choose or type a name" : "Type a name, then Enter"}
            data={names}
            value={lists.only}
            onChange={(only) => say({ ...lists, only })}
          />
        )}
        <TagsInput
          label={`${title}: never these`}
          placeholder={names.length ? "Choose or type a name" : "Type a name, then Enter"}
          data={names}
          value={lists.deny}
          onChange={(deny) => say({ ...lists, deny })}
        />
      </Stack>
    </Box>
  );
}
