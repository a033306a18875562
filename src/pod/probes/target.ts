import {
  type Container,
  type ContainerId,
  ExpansionBudget,
  expand,
  type HTTPGetAction,
  type IntOrString,
  type PodUid,
  type Probe,
} from "../../ground/model/index.ts";
import { type RequestHeaders, requestHeaders } from "./http/headers.ts";
import { type HttpUrl, urlOf } from "./http/url.ts";

/** What one attempt of a probe does, with every name resolved. */
export type ProbeTarget =
  | { readonly type: "exec"; readonly pod: PodUid; readonly id: ContainerId; readonly command: readonly string[] }
  | { readonly type: "http"; readonly url: HttpUrl; readonly headers: RequestHeaders }
  | { readonly type: "tcp"; readonly host: string; readonly port: number }
  | { readonly type: "grpc"; readonly host: string; readonly port: number; readonly service: string };

/** The probe's spec cannot be carried out, for example because it names a port the container does not have. */
export class ProbeTargetError extends Error {
  override readonly name = "ProbeTargetError";
}

export const probeUserAgent = "kube-probe/1.34";

/** Where a probe finds the container that it is about. */
export interface ProbedInstance {
  readonly pod: PodUid;
  readonly id: ContainerId;
  readonly podIp: string;
}

/** Resolves a probe for one instance of its container; throws a ProbeTargetError when the spec makes no sense. */
export function targetOf(probe: Probe, container: Container, { pod, id, podIp }: ProbedInstance): ProbeTarget {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  if (exec !== undefined) return { type: "exec", pod, id, command: expandCommand(exec.command ?? [], container) };
  if (httpGet !== undefined) return { type: "http", ...httpTarget(httpGet, container, podIp, probeUserAgent) };
  if (tcpSocket !== undefined) {
    const port = resolvePort(tcpSocket.port, container);
    return { type: "tcp", host: tcpSocket.host || podIp, port };
  }
  if (grpc !== undefined) return { type: "grpc", host: podIp, port: grpc.port, service: grpc.service ?? "" };
  throw new ProbeTargetError(`missing probe handler for ${container.name}`);
}

/** Whether the probe reaches its container at the pod's address. */
export function needsPodIp({ exec, httpGet, tcpSocket }: Probe): boolean {
  return exec === undefined && !(httpGet ?? tcpSocket)?.host;
}

/** URL and headers of an httpGet action, of a probe or of a lifecycle hook. */
export function httpTarget(
  action: HTTPGetAction,
  container: Container,
  podIp: string,
  userAgent: string,
): { readonly url: HttpUrl; readonly headers: RequestHeaders } {
  const scheme = action.scheme?.toLowerCase() === "https" ? "https" : "http";
  const port = resolvePort(action.port, container);
  return {
    url: urlOf(scheme, action.host || podIp, port, action.path ?? "/"),
    headers: requestHeaders(action.httpHeaders ?? [], userAgent),
  };
}

/** A port number, the name of one of the container's ports, or a number written as text. */
export function resolvePort(wanted: IntOrString, container: Container): number {
  let port: number;
  if (typeof wanted === "number") port = wanted;
  else {
    const named = container.ports?.find(({ name }) => name === wanted);
    if (named === undefined && !/^[+-]?\d+$/.test(wanted)) {
      throw new ProbeTargetError(`strconv.Atoi: parsing ${JSON.stringify(wanted)}: invalid syntax`);
    }
    port = named?.containerPort ?? Number(wanted);
  }
  if (port < 1 || port > 65535) throw new ProbeTargetError(`invalid port number: ${port}`);
  return port;
}

/** Only literal values of the container's env are known here; those from elsewhere count as empty. */
function expandCommand(command: readonly string[], { env = [] }: Container): readonly string[] {
  const values = new Map(env.map(({ name, value }) => [name, value ?? ""]));
  const budget = new ExpansionBudget();
  return command.map((word) => expand(word, (name) => values.get(name), budget));
}
