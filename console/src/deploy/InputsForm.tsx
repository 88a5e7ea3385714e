// The settings an app declares in its manifest. Loaded only where a form is shown.

import "@mantine/dates/styles.css";
import { Box, NativeSelect, Text } from "@mantine/core";
import { withTheme } from "@rjsf/core";
import { Theme } from "@rjsf/mantine";
import {
  type DescriptionFieldProps,
  enumOptionsValueForIndex,
  type ObjectFieldTemplateProps,
  type RJSFSchema,
  type UiSchema,
  type WidgetProps,
} from "@rjsf/utils";
import type { ComponentType } from "react";
import { PlainValidator } from "./validator";

type Inputs = Record<string, unknown>;

const Form = withTheme<Inputs>({
  ...Theme,
  widgets: { ...Theme.widgets, SelectWidget: Choice },
  templates: { ...Theme.templates, DescriptionFieldTemplate: Description, ObjectFieldTemplate: Part },
});
const validator = new PlainValidator<Inputs>();
const ui: UiSchema<Inputs> = { "ui:submitButtonOptions": { norender: true }, "ui:title": "", "ui:description": "" };

interface Props {
  schema: RJSFSchema;
  value: Inputs;
  change: (inputs: Inputs) => void;
}

export function InputsForm({ schema, value, change }: Props) {
  return (
    <Form
      tagName="div"
      schema={schema}
      uiSchema={ui}
      formData={value}
      validator={validator}
      liveValidate
      showErrorList={false}
      omitExtraData
      onChange={({ formData }) => change(formData ?? {})}
    />
  );
}

const FEW = 8;

/** A long list of optional settings stays folded. */
function Part(props: ObjectFieldTemplateProps<Inputs>) {
  const Whole = Theme.templates?.ObjectFieldTemplate as ComponentType<ObjectFieldTemplateProps<Inputs>>;
  const names = Object.keys(props.schema.properties ?? {});
  const whole = props.fieldPathId.path.length === 0;
  if (whole || names.length < FEW || props.schema.required?.length) return <Whole {...props} />;
  const made = Object.values(props.formData ?? {}).some((value) => value !== undefined);
  return (
    <details open={made || undefined}>
      <summary>
        <Text span size="sm" fw={500}>
          {props.title}
        </Text>{" "}
        <Text span size="sm" c="dimmed">
          {names.length} optional settings
        </Text>
      </summary>
      <Box pt="sm">
        <Whole {...props} title="" />
      </Box>
    </details>
  );
}

function Description({ description }: DescriptionFieldProps) {
  return description ? (
    <Text size="xs" c="dimmed" component="div">
      {description}
    </Text>
  ) : null;
}

/** The theme's own select leaves the description out. Multiple selection stays with the theme. */
function Choice(props: WidgetProps<Inputs>) {
  const Several = Theme.widgets?.SelectWidget as ComponentType<WidgetProps<Inputs>> | undefined;
  if (props.multiple && Several) return <Several {...props} />;
  const options = props.options.enumOptions ?? [];
  const at = options.findIndex((option) => option.value === props.value);
  return (
    <NativeSelect
      id={props.id}
      label={props.label}
      description={props.schema.description}
      required={props.required}
      disabled={props.disabled || props.readonly}
      error={props.rawErrors?.[0]}
      value={at < 0 ? "" : String(at)}
      onChange={(event) => props.onChange(enumOptionsValueForIndex(event.currentTarget.value, options))}
      data={[
        ...(at < 0 ? [{ value: "", label: "" }] : []),
        ...options.map((option, index) => ({ value: String(index), label: option.label })),
      ]}
    />
  );
}
