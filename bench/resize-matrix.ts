// Resizes of running pods come out right whatever happens (`npm run prove:resize`): every kind of change, room, kill -9.
// NODELET_SEED repeats a run, NODELET_KILLS makes it shorter or longer, NODELET_PARTS="matrix,kills" runs some parts only.
// NODELET_CLUSTER is a directory with admin.kubeconfig, node.kubeconfig (of test-node) and ca.crt of a control plane to use
// instead of the local API server.
import { systemClock } from "../src/ground/base/index.ts";
import { proofParts, proveResizes } from "../test/support/resize-proof/prove.ts";

const chosen = process.env["NODELET_PARTS"]?.split(",") ?? proofParts;
const parts = proofParts.filter((part) => chosen.includes(part));
const seed = Number(process.env["NODELET_SEED"] ?? systemClock.now() % 1_000_000);
const began = systemClock.monotonic();
const resized = await proveResizes({
  seed,
  kills: Number(process.env["NODELET_KILLS"] ?? 100),
  parts,
  cluster: process.env["NODELET_CLUSTER"],
  report: (line) => console.error(line),
});
const seconds = Math.round((systemClock.monotonic() - began) / 1000);
console.log(JSON.stringify({ bench: "resize-matrix", seed, resized, seconds }));
