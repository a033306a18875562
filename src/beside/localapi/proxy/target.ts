import { goQuote, table } from "../../../ground/base/index.ts";
import type { Node, Pod } from "../../../ground/model/index.ts";
import { nodes, pods } from "../kinds/index.ts";
import { keyOf } from "../object.ts";
import type { World } from "../rest/world.ts";
import { badRequest, notFound, StatusError } from "../status-error.ts";

/** Where a request goes on to. */
export interface ProxyTarget {
  readonly protocol: "http:" | "https:";
  readonly host: string;
  readonly port: number;
  /** With the query. */
  readonly path: string;
  /** A kubelet is shown the server's own certificate; others are strangers. */
  readonly isKubelet: boolean;
}

const addressTypes = ["InternalIP", "ExternalIP", "Hostname"];
const defaultKubeletPort = 10250;

/** A place on the kubelet of a node. */
export function kubeletTarget(world: World, nodeName: string, path: string): ProxyTarget {
  const { addresses, port } = reachOf(world, nodeName);
  const host = world.kubeletHost ?? addresses[0];
  if (host === undefined) throw withoutAddress();
  return { protocol: "https:", host, port, path, isKubelet: true };
}

/** A port of a node: the kubelet's, unless the name in the request says another one, where a stranger may listen. */
export function nodeTarget(world: World, id: string, path: string): ProxyTarget {
  const { scheme, name, port } = splitId(id, "node");
  const reach = reachOf(world, name);
  if (port === "" || port === String(reach.port)) return kubeletTarget(world, name, path);
  const [host] = reach.addresses;
  if (host === undefined) throw withoutAddress();
  return { protocol: scheme === "https" ? "https:" : "http:", host, port: portNumber(port), path, isKubelet: false };
}

function reachOf(world: World, name: string): { readonly addresses: readonly string[]; readonly port: number } {
  const node = world.store.get(nodes.storage, name) as Node | undefined;
  if (node === undefined) throw notFound(nodes, name);
  const told = node.status?.addresses ?? [];
  const inOrder = addressTypes.flatMap((type) => told.filter((address) => address.type === type));
  const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultKubeletPort;
  return { addresses: inOrder.map(({ address }) => address), port };
}

function withoutAddress(): StatusError {
  const message = "Internal error occurred: no preferred addresses found; known addresses: []";
  return new StatusError(500, "InternalError", message);
}

/** What a pod serves itself, at the port that its name in the request says or its first one. */
export function podTarget(world: World, namespace: string, id: string, path: string): ProxyTarget {
  const { scheme, name, port } = splitId(id, "pod");
  const pod = podNamed(world, namespace, name);
  const ports = (pod.spec?.containers ?? []).flatMap((container) => container.ports ?? []);
  const named = ports.find((each) => port !== "" && each.name === port);
  const chosen = port === "" ? (ports[0]?.containerPort ?? 80) : (named?.containerPort ?? portNumber(port));
  const protocol = scheme === "https" ? "https:" : "http:";
  return { protocol, host: pod.status?.podIP ?? "", port: chosen, path, isKubelet: false };
}

/** `name`, `name:port` or `scheme:name:port`. */
function splitId(id: string, what: string): { readonly scheme: string; readonly name: string; readonly port: string } {
  const parts = id.split(":");
  const [scheme = "", name = "", port = ""] = parts.length === 3 ? parts : ["", ...parts];
  if (parts.length > 3 || name === "" || !["", "http", "https"].includes(scheme)) {
    throw badRequest(`invalid ${what} request ${goQuote(id)}`);
  }
  return { scheme, name, port };
}

function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw badRequest(`found port ${goQuote(text)}, wanted a number from 1 to 65535`);
  return port;
}

function podNamed(world: World, namespace: string, name: string): Pod {
  const pod = world.store.get(pods.storage, keyOf(namespace, name));
  if (pod === undefined) throw notFound(pods, name);
  return pod as unknown as Pod;
}

/** The kubelet's address of a log or a stream of a pod's container; undefined while the pod is on no node. */
export function containerTarget(
  world: World,
  namespace: string,
  name: string,
  subresource: string,
  query: URLSearchParams,
): ProxyTarget | undefined {
  const pod = podNamed(world, namespace, name);
  const container = subresource === "portforward" ? "" : chosenContainer(pod, query.get("container") ?? "");
  if (!pod.spec?.nodeName) {
    if (subresource === "log") return undefined;
    throw badRequest(`pod ${name} does not have a host assigned`);
  }
  const segments = [kubeletPaths[subresource] ?? subresource, namespace, name, container].filter((part) => part !== "");
  const options = kubeletQuery(subresource, query);
  const path = `/${segments.map(encodeURIComponent).join("/")}${options === "" ? "" : `?${options}`}`;
  return kubeletTarget(world, pod.spec.nodeName, path);
}

const kubeletPaths: Readonly<Record<string, string>> = table({ log: "containerLogs", portforward: "portForward" });

function chosenContainer(pod: Pod, asked: string): string {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const names = [...containers, ...initContainers, ...ephemeralContainers].map((container) => container.name);
  const podName = pod.metadata?.name;
  if (asked !== "") {
    if (!names.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${podName}`);
    return asked;
  }
  const [only] = containers;
  if (containers.length === 1 && only !== undefined) return only.name;
  const regular = containers.map((container) => container.name).join(" ");
  const others = initContainers.map((container) => container.name).join(" ");
  const alternatives = others === "" ? "" : ` or one of the init containers: [${others}]`;
  throw badRequest(`a container name must be specified for pod ${podName}, choose one of: [${regular}]${alternatives}`);
}

const streamFlags: readonly (readonly [string, string])[] = [
  ["stdin", "input"],
  ["stdout", "output"],
  ["stderr", "error"],
  ["tty", "tty"],
];

const logOptions = [
  "follow",
  "previous",
  "sinceSeconds",
  "sinceTime",
  "timestamps",
  "tailLines",
  "limitBytes",
  "stream",
];

/** The same options in the words of the kubelet. */
function kubeletQuery(subresource: string, query: URLSearchParams): string {
  const options = new URLSearchParams();
  if (subresource === "exec" || subresource === "attach") {
    for (const [flag, kubeletFlag] of streamFlags) {
      const isSet = query.has(flag) ? query.get(flag) !== "false" : flag === "stdout" || flag === "stderr";
      if (isSet) options.append(kubeletFlag, "1");
    }
    for (const word of query.getAll("command")) options.append("command", word);
  } else {
    const passed = subresource === "log" ? logOptions : ["port"];
    for (const [key, value] of query) if (passed.includes(key)) options.append(key, value);
  }
  return options.toString();
}
