// Holds an OpenAPI description against Spectral's rules, all of them. Its command line would do the same with ninety more packages.
//
//   node spectral.mjs openapi.yaml
//
// Exit 0: nothing was found; 1: something was, one line each; 2: the file could not be read.
import { readFile } from "node:fs/promises";
import core from "@stoplight/spectral-core";
import parsers from "@stoplight/spectral-parsers";
import rulesets from "@stoplight/spectral-rulesets";

const rules = {
  extends: [[rulesets.oas, "all"]],
  rules: {
    "contact-properties": "off", // whom to ask differs between installations
    "openapi-tags-alphabetical": "off", // in the order in which one meets them
  },
};

const [file] = process.argv.slice(2);
try {
  const spectral = new core.Spectral();
  spectral.setRuleset(rules);
  const found = await spectral.run(new core.Document(await readFile(file, "utf8"), parsers.Yaml, file));
  for (const { code, message, path, range } of found) {
    console.log(`${file}:${range.start.line + 1}: ${code}: ${message} (${path.join(".")})`);
  }
  process.exitCode = found.length > 0 ? 1 : 0;
} catch (err) {
  console.error(err);
  process.exitCode = 2;
}
