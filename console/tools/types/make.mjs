// Writes src/api/types.gen.ts from contracts/openapi.json. The Idempotency-Key is left out of the calls: the client sends
// one with everything that changes something.

import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const at = (path) => new URL(path, import.meta.url);
const contract = JSON.parse(readFileSync(at("../../../contracts/openapi.json"), "utf8"));

for (const item of Object.values(contract.paths)) {
  for (const operation of Object.values(item)) {
    operation.parameters = operation.parameters?.filter((one) => one.name?.toLowerCase() !== "idempotency-key");
  }
}
const types = astToString(await openapiTS(contract, { alphabetize: true }));
writeFileSync(
  at("../../src/api/types.gen.ts"),
  `// Generated from contracts/openapi.json by \`make console\`.\n\n${types}`,
);
