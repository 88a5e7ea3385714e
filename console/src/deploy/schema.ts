// Checks data against an app's JSON Schema without making code from it: the page's policy forbids eval, and rightly so.

import { type Schema, Validator } from "@cfworker/json-schema";

export interface Found {
  keyword: string;
  instanceLocation: string;
  error: string;
}

export function check(schema: unknown, data: unknown): Found[] {
  return new Validator(schema as Schema, "2020-12", false).validate(data).errors;
}
