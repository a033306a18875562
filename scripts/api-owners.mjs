// Who writes which objects of the API. One owner per object: a second writer would undo what the first one wrote, or be
// refused for its sake. docs/architecture.md shows the table; api-owners.test.mjs holds both to the sources.
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";

/** By "object: verbs" the folder or file below src/ that owns it. Objects are called as in connections/kube/resources.ts. */
export const apiOwners = [
  { objects: ["nodes"], verbs: ["create", "patch"], owner: "node/object" },
  { objects: ["csiNodes"], verbs: ["create", "update"], owner: "node/object/csi-node" },
  { objects: ["resourceSlices"], verbs: ["deleteCollection"], owner: "node/object/resource-slices.ts" },
  { objects: ["leases"], verbs: ["create", "update"], owner: "node/object/heartbeat" },
  { objects: ["pods"], verbs: ["create"], owner: "pod/registry/mirror-pods.ts" },
  { objects: ["pods"], verbs: ["patch", "delete"], owner: "pod/status" },
  { objects: ["persistentVolumeClaims"], verbs: ["patch"], owner: "pod/volumes/cluster-storage.ts" },
  { objects: ["events"], verbs: ["create", "patch"], owner: "connections/kube/events" },
  { objects: ["certificateSigningRequests"], verbs: ["create"], owner: "connections/kube/certificates" },
  { objects: ["serviceAccounts"], verbs: ["create"], owner: "connections/kube/objects" },
  { objects: ["tokenReviews", "subjectAccessReviews"], verbs: ["create"], owner: "node/server/auth" },
];

const verbs = "create|update|patch|delete|deleteCollection";
/** A call with a resource of the table, or with a variable that holds one. */
const writePattern = new RegExp(
  `\\.(${verbs})\\(\\s*(?:resources\\.(\\w+)|(?<=client\\.(?:${verbs})\\(\\s*)(\\w+)),`,
  "g",
);

/** What a file writes: `{ object, verb }`. A file that writes through a variable may name one resource only. */
export function writesIn(file, text) {
  const named = [...new Set([...text.matchAll(/(?<![\w/])resources\.(\w+)/g)].map(([, name]) => name))];
  return [...text.matchAll(writePattern)].map(([, verb, object, variable]) => {
    if (object === undefined && named.length !== 1) throw new Error(`${file}: which resource is ${variable}?`);
    return { verb, object: object ?? named[0] };
  });
}

/** Whether a file holds a client that can write. */
export function canWrite(text) {
  return [...text.matchAll(/^.*\bKubeClient\b.*$/gm)].some(([line]) => {
    if (/^\s*(?:import|export)\b/.test(line) || /^\s*(?:type )?KubeClient,$/.test(line)) return false;
    const picked = /Pick<\s*KubeClient,([^>]*)>/.exec(line)?.[1];
    return picked === undefined || new RegExp(`"(?:${verbs})"`).test(picked);
  });
}

/** The agent's sources; the local API server and what makes clients are not among them. */
export function agentSources(root) {
  return readdirSync(join(root, "src"), { recursive: true })
    .map((name) => name.split(sep).join("/"))
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && !name.startsWith("beside/"))
    .filter((name) => name !== "connections/kube/client.ts" && name !== "connections/kube/clients.ts")
    .map((name) => ({ name, text: readFileSync(join(root, "src", name), "utf8") }));
}
