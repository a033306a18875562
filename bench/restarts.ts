// Pods must not notice that the agent ends and starts again, 100 times and more (`npm run prove:restarts`).
// NODELET_SEED repeats a run; NODELET_PODS, NODELET_KILLS, NODELET_TERMS and NODELET_SWAPS (of the binary) make it shorter or
// longer; NODELET_OTHER_BUILD is the directory of the build to swap with. NODELET_CLUSTER is a directory with
// admin.kubeconfig, node.kubeconfig (of test-node) and ca.crt of a control plane to use instead of the local API
// server, and with programs api-crash and api-start if that one may be killed.
import { proveRestarts } from "../test/support/restart-proof/prove.ts";

const number = (name: string, usual: number): number => Number(process.env[name] ?? usual);

const figures = await proveRestarts({
  seed: number("NODELET_SEED", Date.now() % 1_000_000),
  pods: number("NODELET_PODS", 40),
  endings: {
    "kill -9": number("NODELET_KILLS", 100),
    SIGTERM: number("NODELET_TERMS", 20),
    "another binary": number("NODELET_SWAPS", 20),
  },
  cluster: process.env["NODELET_CLUSTER"],
  otherBuild: process.env["NODELET_OTHER_BUILD"],
  report: (line) => console.error(line),
});
for (const incident of figures.incidents) console.error(incident);
console.log(JSON.stringify({ bench: "restarts", ...figures, incidents: figures.incidents.length }));
if (figures.incidents.length > 0) process.exitCode = 1;
