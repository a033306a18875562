import type { Pod } from "../../../src/ground/model/index.ts";
import type { VirtualMachine } from "./machine.ts";

/** Speaks to the API server in the machine as its administrator; tries again for as long as there is none. */
const script = `
const { readFileSync } = require("fs");
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
async function main() {
  if (process.argv[2] === "list") return (await call("GET", process.argv[3])).text;
  for (const object of JSON.parse(readFileSync(0, "utf8"))) {
    const { status, text } = await call("POST", process.argv[3], object);
    if (status !== 201 && status !== 409) throw Object.assign(new Error(status + " " + text), { final: true });
  }
  return "made";
}
const look = () => main().then(console.log, (error) => {
  if (!error.final) return setTimeout(look, 500);
  console.error(String(error));
  process.exit(1);
});
look();
`;

const podsPath = "/api/v1/namespaces/default/pods";
const scriptPath = "/root/guest-api.cjs";

/** Objects of the API server in the machine. */
export class GuestApi {
  readonly #machine: VirtualMachine;

  private constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  static async open(machine: VirtualMachine): Promise<GuestApi> {
    await machine.putFile(scriptPath, script);
    return new GuestApi(machine);
  }

  async createPods(pods: readonly Pod[]): Promise<void> {
    await this.create(podsPath, pods);
  }

  async create(path: string, objects: readonly object[]): Promise<void> {
    await this.#machine.run(`node ${scriptPath} create ${path}`, { input: Buffer.from(JSON.stringify(objects)) });
  }

  /** By name. */
  async pods(): Promise<ReadonlyMap<string, Pod>> {
    const items = await this.list<Pod>(podsPath);
    return new Map(items.map((pod) => [pod.metadata?.name ?? "", pod]));
  }

  async list<Kind>(path: string): Promise<readonly Kind[]> {
    const { items } = JSON.parse(await this.#machine.run(`node ${scriptPath} list ${path}`)) as {
      items: readonly Kind[];
    };
    return items;
  }
}
