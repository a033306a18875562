import type { Node, Pod } from "../../model/index.ts";
import { ApiError, badRequest, notFound } from "../api-error.ts";
import { nodes, pods } from "../kinds/index.ts";
import { keyOf } from "../object.ts";
import type { World } from "../rest/world.ts";

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
  const [name = "", port = ""] = nodeName.replace(/^https?:/, "").split(":");
  const node = world.store.get(nodes.storage, name) as Node | undefined;
  if (node === undefined) throw notFound(nodes, name);
  const addresses = node.status?.addresses ?? [];
  const [preferred] = addressTypes.flatMap((type) => addresses.filter((address) => address.type === type));
  const host = world.kubeletHost ?? preferred?.address;
  if (host === undefined) {
    throw new ApiError(
      500,
      "InternalError",
      `Internal error occurred: no preferred addresses found; known addresses: []`,
    );
  }
  const kubeletPort = Number(port) || node.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultKubeletPort;
  return { protocol: "https:", host, port: kubeletPort, path, isKubelet: true };
}

/** What a pod serves itself, at the port that its name in the request says or its first one. */
export function podTarget(world: World, namespace: string, name: string, path: string): ProxyTarget {
  const [scheme, podName = "", port] = /^(?:(https?):)?([^:]+)(?::(.+))?$/.exec(name)?.slice(1) ?? [];
  const pod = podNamed(world, namespace, podName);
  const containers = pod.spec?.containers ?? [];
  const ports = containers.flatMap((container) => container.ports ?? []);
  const chosen =
    port === undefined
      ? ports[0]?.containerPort
      : (ports.find((each) => each.name === port)?.containerPort ?? Number(port));
  const host = pod.status?.podIP ?? "";
  if (host === "") throw badRequest(`address not allowed: pod ${podName} has no address yet`);
  return { protocol: scheme === "https" ? "https:" : "http:", host, port: chosen || 80, path, isKubelet: false };
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

const kubeletPaths: Readonly<Record<string, string>> = { log: "containerLogs", portforward: "portForward" };

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
