import { isIPv6 } from "node:net";
import { type IdentifiedPod, isStaticPod, type Service } from "../../../ground/model/index.ts";
import type { KnownServices } from "./context.ts";
import { ConfigError } from "./errors.ts";

/** The variables by which containers find services without asking DNS. */
export function serviceEnv(pod: IdentifiedPod, known: KnownServices): ReadonlyMap<string, string> {
  const links = pod.spec.enableServiceLinks;
  if (links === undefined) {
    throw new ConfigError("nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
  }
  // A pod from the API proves that the API answers, so its services are worth waiting for.
  if (known.state === "unread" && !isStaticPod(pod)) {
    throw new ConfigError("services have not yet been read at least once, cannot construct envvars");
  }
  if (known.state !== "read") return new Map();
  const visible = new Map<string, Service>();
  for (const service of known.services.filter(hasClusterIp)) {
    if (isApiService(service)) visible.set("kubernetes", service);
  }
  for (const service of known.services.filter(hasClusterIp)) {
    const isOwn = service.metadata?.namespace === pod.metadata.namespace;
    if (links && isOwn && !isApiService(service)) visible.set(service.metadata?.name ?? "", service);
  }
  return new Map([...visible].flatMap(([name, service]) => [...variablesOf(name, service)]));
}

function hasClusterIp(service: Service): boolean {
  return !["", "None", undefined].includes(service.spec?.clusterIP);
}

function isApiService({ metadata }: Service): boolean {
  return metadata?.namespace === "default" && metadata.name === "kubernetes";
}

function variablesOf(serviceName: string, { spec }: Service): ReadonlyMap<string, string> {
  const name = variableName(serviceName);
  const ip = spec?.clusterIP ?? "";
  const host = isIPv6(ip) ? `[${ip}]` : ip;
  const variables = new Map([[`${name}_SERVICE_HOST`, ip]]);
  const ports = (spec?.ports ?? []).map(({ port, name: portName, protocol }) => {
    const proto = (protocol || "TCP").toLowerCase();
    return { port: String(port), portName, proto, url: `${proto}://${host}:${port}` };
  });
  const [first] = ports;
  if (first === undefined) return variables;
  variables.set(`${name}_SERVICE_PORT`, first.port);
  for (const { port, portName } of ports) {
    if (portName) variables.set(`${name}_SERVICE_PORT_${variableName(portName)}`, port);
  }
  variables.set(`${name}_PORT`, first.url);
  for (const { port, proto, url } of ports) {
    const prefix = `${name}_PORT_${port}_${proto.toUpperCase()}`;
    variables.set(prefix, url);
    variables.set(`${prefix}_PROTO`, proto);
    variables.set(`${prefix}_PORT`, port);
    variables.set(`${prefix}_ADDR`, ip);
  }
  return variables;
}

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
