import { Agent } from "node:https";
import { resolve } from "node:path";
import type { ClusterAccess } from "../../../connections/kube/index.ts";
import { mapAtMost, messageOf, withDeadline } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import {
  type ApiStep,
  credentialsOf,
  type ServerAccess,
  type ServerReply,
  send,
  tryTcp,
  tryTls,
} from "./api-connection.ts";
import { readKubeconfig } from "./kubeconfig.ts";
import { addressesOf } from "./names.ts";
import { reasonNotToTry, serverHost, serverPort } from "./server-way.ts";

/** The way to the API server, step by step; a step that failed leaves those after it out. */
export interface ApiFacts {
  readonly kubeconfig: string;
  /** Why the kubeconfig can't be used. */
  readonly unusable?: string;
  readonly server?: string;
  /** Why the doctor does not go there itself. */
  readonly notTried?: string;
  readonly names?: ApiStep;
  readonly tcp?: ApiStep;
  readonly tls?: ApiStep;
  readonly answer?: ApiAnswer;
  /** Why there is no answer although the way is open. */
  readonly unanswered?: string;
}

export interface ApiAnswer {
  /** Of the question for our own Node: 200, 401, 403, 404… */
  readonly status: number;
  /** Our clock minus the server's. */
  readonly aheadMs: number | undefined;
  readonly version: string | undefined;
  readonly podCidrs: readonly string[];
  readonly rights: readonly Right[];
}

export interface Right {
  readonly what: string;
  /** Undefined: the server would not say. */
  readonly allowed: boolean | undefined;
}

export async function gatherApi(
  world: ExaminedWorld,
  need: NeedFact,
  signal: AbortSignal,
): Promise<ApiFacts | undefined> {
  const config = await need("config");
  const named = settingText(config, "--kubeconfig");
  if (named === "") return undefined;
  const kubeconfig = resolve(world.cwd, named);
  let access: ClusterAccess | undefined;
  try {
    access = await readKubeconfig(world, kubeconfig);
  } catch (error) {
    return { kubeconfig, unusable: messageOf(error) };
  }
  if (access === undefined) return { kubeconfig, unusable: `${kubeconfig} is not there` };
  const agent = await need("agent");
  const pid = agent.state === "running" ? agent.self.pid : undefined;
  return await walk(world, { access, nodeName: config.report.nodeName, pid }, signal);
}

async function walk(
  world: ExaminedWorld,
  {
    access,
    nodeName,
    pid,
  }: { readonly access: ClusterAccess; readonly nodeName: string; readonly pid: number | undefined },
  signal: AbortSignal,
): Promise<ApiFacts> {
  const { clock } = world;
  const endsAt = clock.monotonic() + walkMs;
  const { server, file: kubeconfig } = access;
  const base = { kubeconfig, server: server.origin };
  const host = serverHost(access);
  const notTried = await reasonNotToTry(world, access, pid);
  if (notTried !== undefined) return { ...base, notTried };
  const port = serverPort(access);
  const addresses = await addressesOf(host, world, signal);
  if ("problem" in addresses) return { ...base, names: { ok: false, problem: `${host}: ${addresses.problem}` } };
  const [address = host] = addresses;
  const names: ApiStep = { ok: true, note: address === host ? host : `${host} is ${address}` };
  const tcp = await tryTcp(world, { address, port }, signal);
  if (!tcp.ok) return { ...base, names, tcp };
  const way: ServerAccess = { access, address, host, port, credentials: await credentialsOf(world, access) };
  const tls = server.protocol === "https:" ? await tryTls(world, way, signal) : undefined;
  if (tls?.ok === false) return { ...base, names, tcp, tls };
  const open = { ...base, names, tcp, ...(tls && { tls }) };
  try {
    const late = (): Error =>
      new Error(`the API server takes connections, but had not answered after ${walkMs / 1000} s`);
    const answer = await withDeadline(clock, Math.max(0, endsAt - clock.monotonic()), late, signal, (bounded) =>
      askServer(world, way, nodeName, bounded),
    );
    return { ...open, answer };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { ...open, unanswered: messageOf(error) };
  }
}

/** Somewhat less than the whole examination has: what was found out on the way is told even if nobody answers at its end. */
const walkMs = 1_400;

/** What an agent must be allowed to do. */
const rights = [
  { what: "create its Node", resource: "nodes", verb: "create" },
  { what: "write the status of its Node", resource: "nodes", subresource: "status", verb: "patch" },
  {
    what: "renew its Lease",
    group: "coordination.k8s.io",
    resource: "leases",
    verb: "update",
    namespace: "kube-node-lease",
  },
  { what: "watch pods", resource: "pods", verb: "watch" },
  { what: "write the status of pods", resource: "pods", subresource: "status", verb: "patch", namespace: "default" },
  { what: "create events", resource: "events", verb: "create", namespace: "default" },
  {
    what: "ask for certificates",
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    verb: "create",
  },
] as const;

async function askServer(
  world: ExaminedWorld,
  way: ServerAccess,
  nodeName: string,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  try {
    const ask = (method: string, path: string, body?: object) => send(way, agent, { method, path, body }, signal);
    const startedAt = world.clock.now();
    const node = await ask("GET", `/api/v1/nodes/${encodeURIComponent(nodeName)}`);
    const now = (startedAt + world.clock.now()) / 2;
    const { version, reviews } = await besides(ask, nodeName, node.status);
    const date = node.date === undefined ? Number.NaN : Date.parse(node.date);
    const spec = (
      node.body as { readonly spec?: { readonly podCIDRs?: readonly string[]; readonly podCIDR?: string } } | undefined
    )?.spec;
    return {
      status: node.status,
      // The header counts whole seconds: it is half a second behind on average.
      aheadMs: Number.isNaN(date) ? undefined : now - (date + 500),
      version,
      podCidrs: spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR]),
      rights: reviews,
    };
  } finally {
    agent.destroy();
  }
}

type Ask = (method: string, path: string, body?: object) => Promise<ServerReply>;

async function besides(ask: Ask, nodeName: string, status: number) {
  const versionAsked = ask("GET", "/version");
  const reviews: Right[] = [];
  if (status !== 401) {
    const reviewed = await mapAtMost(4, rights, async ({ what, ...attributes }) => {
      const body = {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { ...attributes, ...scopeOf(attributes, nodeName) } },
      };
      const reply = await ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body);
      const answer = reply.body as { readonly status?: { readonly allowed?: boolean } } | undefined;
      return { what, allowed: reply.status < 300 ? answer?.status?.allowed === true : undefined };
    });
    reviews.push(...reviewed);
  }
  const version = (await versionAsked.catch(() => undefined))?.body as { readonly gitVersion?: unknown } | undefined;
  return { version: typeof version?.gitVersion === "string" ? version.gitVersion.slice(0, 64) : undefined, reviews };
}

/** A node may ask for what is its own only. */
function scopeOf({ resource, verb }: { readonly resource: string; readonly verb: string }, nodeName: string): object {
  if (verb === "watch") {
    return { fieldSelector: { requirements: [{ key: "spec.nodeName", operator: "In", values: [nodeName] }] } };
  }
  const isNamed = verb !== "create" && (resource === "nodes" || resource === "leases");
  return isNamed ? { name: nodeName } : {};
}
