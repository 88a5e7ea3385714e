// Validates data against an app's JSON Schema without compiling code: the page's security policy forbids eval.

import { type Schema, Validator } from "@cfworker/json-schema";

export interface Found {
  keyword: string;
  instanceLocation: string;
  error: string;
}

export function check(schema: unknown, data: unknown): Found[] {
  return new Validator(schema as Schema, "2020-12", false).validate(data).errors;
}
