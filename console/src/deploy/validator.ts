// The validator interface of rjsf on top of schema.ts.

import {
  type CustomValidator,
  createErrorHandler,
  type ErrorSchema,
  type ErrorTransformer,
  type FormContextType,
  type RJSFSchema,
  type RJSFValidationError,
  type StrictRJSFSchema,
  toErrorSchema,
  type UiSchema,
  unwrapErrorHandler,
  type ValidationData,
  type ValidatorType,
  validationDataMerge,
} from "@rjsf/utils";
import { check, type Found } from "./schema";

/** The error as a sentence; the schema's titles name the field. */
function sentence({ keyword, error }: Found): string {
  const words: Record<string, string> = {
    pattern: "Invalid format.",
    required: "Required.",
    not: "This value is not allowed.",
    enum: "Choose one of the listed values.",
  };
  return words[keyword] ?? error;
}

const WHOLE = new Set(["properties", "allOf", "anyOf", "oneOf", "if", "then", "else", "items", "$ref"]); // only repeat that something inside is wrong

export class PlainValidator<
  T,
  S extends StrictRJSFSchema = RJSFSchema,
  F extends FormContextType = Record<string, unknown>,
> implements ValidatorType<T, S, F>
{
  rawValidation<Result>(schema: S, formData?: T): { errors?: Result[]; validationError?: Error } {
    return { errors: check(schema, formData) as Result[] };
  }

  isValid(schema: S, formData: T | undefined, _root: S): boolean {
    return check(schema, formData).length === 0;
  }

  validateFormData(
    formData: T | undefined,
    schema: S,
    customValidate?: CustomValidator<T, S, F>,
    transformErrors?: ErrorTransformer<T, S, F>,
    uiSchema?: UiSchema<T, S, F>,
  ): ValidationData<T> {
    const found = check(schema, formData).filter((one) => !WHOLE.has(one.keyword));
    let errors: RJSFValidationError[] = found.map((one) => ({
      name: one.keyword,
      message: sentence(one),
      stack: sentence(one),
      property: `.${one.instanceLocation.replace(/^#\/?/, "").replaceAll("/", ".")}`,
    }));
    if (transformErrors) errors = transformErrors(errors, uiSchema);
    const errorSchema = toErrorSchema<T>(errors) as ErrorSchema<T>;
    if (!customValidate) return { errors, errorSchema };
    const handled = customValidate(formData, createErrorHandler<T>(formData as T), uiSchema);
    return validationDataMerge<T>({ errors, errorSchema }, unwrapErrorHandler<T>(handled));
  }

  reset(): void {}
}
