import assert from "node:assert/strict";
import {
  type AgentConfig,
  type ConfigIo,
  type ConfigProblem,
  type LoadResult,
  loadConfig,
} from "../../src/ground/config/index.ts";
import { memoryIo } from "./config-io.ts";

export const fileHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/** Loads a --config file with these lines after apiVersion and kind, with an API server to talk to. */
export function loadFile(
  yaml: string,
  flags: readonly string[] = [],
  overrides: Partial<ConfigIo> = {},
): Promise<LoadResult> {
  const argv = ["--kubeconfig=/etc/kubeconfig", "--config=/etc/kubelet.yaml", ...flags];
  return loadConfig(argv, memoryIo({ "/etc/kubelet.yaml": fileHeader + yaml }, overrides));
}

/** The configuration, or a failed test that says why there is none. */
export function configOf(result: LoadResult): AgentConfig {
  if (result.kind === "config") return result.config;
  assert.fail(result.kind === "invalid" ? result.message : `found ${result.kind} instead of a configuration`);
}

/** What is wrong with a configuration that must not be valid. */
export function problemsOf(result: LoadResult): readonly ConfigProblem[] {
  if (result.kind === "invalid") return result.problems;
  assert.fail(`found ${result.kind} instead of problems`);
}
