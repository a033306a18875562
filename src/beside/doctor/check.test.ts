import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../../test/support/config-io.ts";
import { labFacts, type SetUp } from "../../../test/support/doctor-lab.ts";
import { configOf, fileHeader } from "../../../test/support/load-config.ts";
import { configReport, loadConfig } from "../../ground/config/index.ts";
import { mend } from "./check.ts";
import { known, setting } from "./facts.ts";

const path = "/etc/kubelet.yaml";
const argv = [`--config=${path}`, "--kubeconfig=/etc/kubelet.conf"];
const setUp = (yaml: string): SetUp => ({ argv, files: { [path]: yaml } });

for (const [what, yaml, fix, mended] of [
  [
    "a file without the block",
    "port: 10250\n",
    `add to ${path}: authentication: {x509: {clientCAFile: "/ca"}}; then restart the agent`,
    'port: 10250\nauthentication: {x509: {clientCAFile: "/ca"}}\n',
  ],
  [
    "a file with the block",
    "authentication:\n  webhook: {enabled: true}\n",
    `in ${path}, add below authentication: x509: {clientCAFile: "/ca"}; then restart the agent`,
    'authentication:\n  x509: {clientCAFile: "/ca"}\n  webhook: {enabled: true}\n',
  ],
] as const) {
  test(`a setting that has its default, ${what}: the line that mends it does so`, async () => {
    const config = known((await labFacts(setUp(yaml))).config);
    const found = setting(config, "authentication.x509.clientCAFile");
    assert.equal(mend(config, found, "/ca", "client-ca-file"), fix);
    const after = configReport(configOf(await loadConfig(argv, memoryIo({ [path]: fileHeader + mended }))));
    assert.equal(after.fields.find(({ name }) => name === found.name)?.value, "/ca");
  });
}
