// Generates the console's view of contracts/: types.gen.ts (requests and answers), detail.gen.ts (well-known parts of
// adapter_detail) and facts.gen.ts (actions, states, what events touch). The Idempotency-Key is left out of the calls:
// the client sends one with every change.

import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const at = (path) => new URL(path, import.meta.url);
const read = (name) => JSON.parse(readFileSync(at(`../../../contracts/${name}`), "utf8"));
const write = (name, sources, text) =>
  writeFileSync(at(`../../src/api/${name}`), `// Generated from ${sources} by \`make console\`.\n\n${text}`);

const contract = read("openapi.json");
for (const item of Object.values(contract.paths)) {
  for (const operation of Object.values(item)) {
    operation.parameters = operation.parameters?.filter((one) => one.name?.toLowerCase() !== "idempotency-key");
  }
}
write("types.gen.ts", "contracts/openapi.json", astToString(await openapiTS(contract, { alphabetize: true })));

const {
  $defs,
  $schema: _,
  ...AdapterDetail
} = JSON.parse(JSON.stringify(read("adapter-detail.schema.json")).replaceAll("#/$defs/", "#/components/schemas/"));
const detail = { openapi: "3.1.0", info: { title: "", version: "1" }, paths: {} };
const schemas = { schemas: { ...$defs, AdapterDetail } };
const parts = await openapiTS({ ...detail, components: schemas }, { alphabetize: true, defaultNonNullable: false });
write("detail.gen.ts", "contracts/adapter-detail.schema.json", astToString(parts));

const actions = read("actions.json");
const lifecycles = read("lifecycles.json");
const { events, reads } = read("events.json");
const { roles } = read("permissions.json");
const errors = Object.keys(read("errors.json"));
const states = Object.fromEntries(
  Object.entries(lifecycles).map(([kind, { live, terminal }]) => [kind, { live, terminal }]),
);
const constant = (name, value) => `export const ${name} = ${JSON.stringify(value, null, 2)} as const;\n`;
write(
  "facts.gen.ts",
  "contracts/actions.json, lifecycles.json, events.json, permissions.json and errors.json",
  [
    constant("ACTIONS", actions),
    constant("STATES", states),
    constant("EVENTS", events),
    constant("READS", reads),
    constant("ROLES", roles),
    `export type ErrorCode =\n${errors.map((code) => `  | ${JSON.stringify(code)}`).join("\n")};\n`,
  ].join("\n"),
);
