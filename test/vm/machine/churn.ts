import { baseImageNames } from "../../../src/beside/cli/machine/index.ts";
import type { VirtualMachine } from "./machine.ts";

export const acknowledgedFile = "/var/lib/vm-acknowledged";

/**
 * Keeps agent and API server writing: objects made and removed at the API, a static pod rewritten. Notes on the disk, and
 * waits for it to be there, what the server has answered to: that must survive anything from then on.
 */
const script = `
const { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } = require("fs");
const { request } = require("https");
const config = JSON.parse(readFileSync("/var/lib/nodelet-api/admin.kubeconfig", "utf8"));
const { server, "certificate-authority-data": ca } = config.clusters[0].cluster;
const user = config.users[0].user;
const bytes = (text) => (text === undefined ? undefined : Buffer.from(text, "base64"));
const tls = { ca: bytes(ca), cert: bytes(user["client-certificate-data"]), key: bytes(user["client-key-data"]) };
function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", ...(user.token && { authorization: "Bearer " + user.token }) };
    const asked = request(new URL(path, server), { method, headers, ...tls }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode, text }));
      response.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
function note(line) {
  const file = openSync("${acknowledgedFile}", "a");
  appendFileSync(file, line + "\\n");
  fsyncSync(file);
  closeSync(file);
}
const space = "/api/v1/namespaces/default";
const pod = (name) => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" },
  spec: { nodeName: "vm", terminationGracePeriodSeconds: 0, containers: [
    { name: "main", image: "${baseImageNames.busybox}", imagePullPolicy: "Never", command: ["sleep", "100000"] } ] },
});
const map = (name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data: { name } });
async function create(kind, object) {
  const { status, text } = await call("POST", space + "/" + kind, object);
  if (status !== 201) throw new Error(status + " " + text);
  note("made " + kind + " " + object.metadata.name);
}
async function remove(kind, name) {
  note("removing " + kind + " " + name);
  await call("DELETE", space + "/" + kind + "/" + name, { gracePeriodSeconds: 0 });
}
const list = async (kind) => JSON.parse((await call("GET", space + "/" + kind)).text).items.map((item) => item.metadata.name);
if (process.argv[2] === "list") {
  // One process that asks until the server answers: to start Node for each try would keep an emulated machine busy.
  const look = async () => {
    try { console.log(JSON.stringify({ pods: await list("pods"), configmaps: await list("configmaps") })); }
    catch { setTimeout(look, 500); }
  };
  look();
} else (async () => {
  const run = process.argv[3];
  for (let i = 0; ; i++) {
    try {
      await create("configmaps", map("map-" + run + "-" + i));
      if (i % 4 === 0) {
        await create("pods", pod("churn-" + run + "-" + i));
        const churned = (await list("pods")).filter((name) => name.startsWith("churn-"));
        for (const name of churned.slice(0, -1)) await remove("pods", name);
        const flip = { ...pod("flip"), spec: { ...pod("flip").spec, nodeName: undefined, containers: [ { ...pod("flip").spec.containers[0], env: [{ name: "TURN", value: run + "-" + i }] } ] } };
        writeFileSync("/etc/kubernetes/flip.new", JSON.stringify(flip), { flush: true });
        renameSync("/etc/kubernetes/flip.new", "/etc/kubernetes/manifests/flip.json");
      }
      const maps = (await list("configmaps")).filter((name) => name.startsWith("map-"));
      for (const name of maps.slice(0, -20)) await remove("configmaps", name);
    } catch (error) {
      console.error(String(error));
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
})();
`;

export async function installChurn(machine: VirtualMachine): Promise<void> {
  await machine.putFile("/usr/local/lib/vm-churn.cjs", script);
  await machine.run("sync");
}

/** Starts writing; goes on until the power is cut. */
export async function startChurn(machine: VirtualMachine, run: number): Promise<void> {
  await machine.run(`systemd-run --quiet --unit vm-churn node /usr/local/lib/vm-churn.cjs churn ${run}`);
  await machine.until("churn is under way", `grep -q 'made pods churn-${run}-' ${acknowledgedFile}`);
}

/** What the API server answered to and was not asked to remove since; kinds with names. */
export async function acknowledgedObjects(machine: VirtualMachine): Promise<readonly string[]> {
  return acknowledgedIn(await machine.run(`cat ${acknowledgedFile}`));
}

export function acknowledgedIn(notes: string): readonly string[] {
  const kept = new Set<string>();
  for (const line of notes.trimEnd().split("\n")) {
    const [what, kind, name] = line.split(" ");
    if (what === "made") kept.add(`${kind} ${name}`);
    if (what === "removing") kept.delete(`${kind} ${name}`);
  }
  return [...kept];
}

export async function storedObjects(machine: VirtualMachine): Promise<ReadonlySet<string>> {
  const { pods, configmaps } = JSON.parse(await machine.run("node /usr/local/lib/vm-churn.cjs list"));
  const named = (kind: string, names: readonly string[]): readonly string[] => names.map((name) => `${kind} ${name}`);
  return new Set([...named("pods", pods), ...named("configmaps", configmaps)]);
}
