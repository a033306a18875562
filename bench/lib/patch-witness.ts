// A process that changes a pod in the API for each line it reads: what the same machine does, in the same seconds, for
// whoever hears of something and tells it to the API server, as the agent does with its probes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { resources } from "../../src/connections/kube/index.ts";
import { adminClients } from "../../test/support/cluster-pods.ts";

/** Where the changed text is found. */
export const witnessAnnotation = "bench.example/witness";

export interface PatchWitness extends AsyncDisposable {
  /** Sets the annotation of the pod to this text, as soon as it can. */
  tell(text: string): void;
}

export async function startPatchWitness(kubeconfig: string, pod: string): Promise<PatchWitness> {
  const child = spawn(process.execPath, ["--import", "tsx", fileURLToPath(import.meta.url)], {
    env: {
      ...process.env,
      NODE_OPTIONS: "",
      NODELET_LOOP_FILE: "",
      NODELET_WITNESS: JSON.stringify({ kubeconfig, pod }),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return {
    tell: (text) => void child.stdin.write(`${text}\n`),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

const task = process.env["NODELET_WITNESS"];
if (task !== undefined) {
  const { kubeconfig, pod } = JSON.parse(task) as { readonly kubeconfig: string; readonly pod: string };
  using clients = await adminClients(kubeconfig);
  console.log("ready");
  for await (const text of createInterface({ input: process.stdin })) {
    const body = { metadata: { annotations: { [witnessAnnotation]: text } } };
    const ref = { namespace: "default", name: pod };
    await clients.main.patch(resources.pods, ref, { type: "merge", body }, AbortSignal.timeout(60_000));
  }
}
