// An agent that runs nothing: it reads the manifests and says of each pod what its annotation "stand-in" tells it to
// (ready, succeeded, failed, pending), or ends at once (exit). Lets `nodelet up` be tested for what agents rarely do.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const option = (name) => process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? "";
const config = JSON.parse(readFileSync(option("config"), "utf8"));
const statuses = {
  ready: { phase: "Running", podIP: "10.0.0.9", conditions: [{ type: "Ready", status: "True" }] },
  succeeded: { phase: "Succeeded" },
  failed: { phase: "Failed", reason: "Evicted" },
  pending: { phase: "Pending" },
};

const pods = readdirSync(config.staticPodPath).map((file) => {
  const pod = JSON.parse(readFileSync(join(config.staticPodPath, file), "utf8"));
  const fate = pod.metadata.annotations["stand-in"];
  if (fate === "exit") {
    process.stderr.write("stand-in agent: told to exit\n");
    process.exit(3);
  }
  mkdirSync(join(option("root-dir"), "pods", pod.metadata.name), { recursive: true });
  return { ...pod, metadata: { ...pod.metadata, uid: pod.metadata.name }, status: statuses[fate] };
});

createServer((request, response) => {
  if (request.url === "/pods?watch=1") {
    for (const object of pods) response.write(`${JSON.stringify({ type: "ADDED", object })}\n`);
  } else response.end("ok");
}).listen(join(option("root-dir"), "nodelet.sock"));
