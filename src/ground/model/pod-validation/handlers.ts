import type { Container, HTTPGetAction, Lifecycle, LifecycleHandler, PodSpec, Probe } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { httpHeaderName, nonNegative, portName, portNumber } from "./names.ts";

export type HandlerPod = Pick<PodSpec, "terminationGracePeriodSeconds" | "os">;

export function checkLifecycle(lifecycle: Lifecycle, pod: HandlerPod, path: string, problems: ProblemList): void {
  if (lifecycle.postStart !== undefined) checkHandler(lifecycle.postStart, pod, `${path}.postStart`, problems);
  if (lifecycle.preStop !== undefined) checkHandler(lifecycle.preStop, pod, `${path}.preStop`, problems);
  if (lifecycle.stopSignal !== undefined) checkStopSignal(lifecycle.stopSignal, pod, `${path}.stopSignal`, problems);
}

export function checkProbes(container: Container, pod: HandlerPod, path: string, problems: ProblemList): void {
  const { livenessProbe, readinessProbe, startupProbe } = container;
  if (livenessProbe !== undefined) {
    checkProbe(livenessProbe, pod, `${path}.livenessProbe`, problems);
    mustSucceedOnce(livenessProbe, `${path}.livenessProbe`, problems);
  }
  if (readinessProbe !== undefined) {
    checkProbe(readinessProbe, pod, `${path}.readinessProbe`, problems);
    if (readinessProbe.terminationGracePeriodSeconds !== undefined) {
      problems.invalid(
        `${path}.readinessProbe.terminationGracePeriodSeconds`,
        readinessProbe.terminationGracePeriodSeconds,
        "must not be set for readinessProbes",
      );
    }
  }
  if (startupProbe !== undefined) {
    checkProbe(startupProbe, pod, `${path}.startupProbe`, problems);
    mustSucceedOnce(startupProbe, `${path}.startupProbe`, problems);
  }
}

function mustSucceedOnce({ successThreshold = 1 }: Probe, path: string, problems: ProblemList): void {
  if (successThreshold !== 1) problems.invalid(`${path}.successThreshold`, successThreshold, "must be 1");
}

const probeNumbers = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

function checkProbe(probe: Probe, pod: HandlerPod, path: string, problems: ProblemList): void {
  checkHandler(probe, pod, path, problems);
  for (const name of probeNumbers) {
    const value = probe[name] ?? 0;
    problems.invalidEach(`${path}.${name}`, value, nonNegative(value));
  }
  const { terminationGracePeriodSeconds: grace } = probe;
  if (grace !== undefined && grace <= 0) {
    problems.invalid(`${path}.terminationGracePeriodSeconds`, grace, "must be greater than 0");
  }
}

/** Exactly one way to act, whether for a probe or for a hook. */
function checkHandler(
  handler: LifecycleHandler & Pick<Probe, "grpc">,
  pod: HandlerPod,
  path: string,
  problems: ProblemList,
): void {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  const given = (["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const).filter(
    (name) => handler[name] !== undefined,
  );
  if (given.length === 0) problems.required(path, "must specify a handler type");
  for (const name of given.slice(1)) problems.forbidden(`${path}.${name}`, "may not specify more than 1 handler type");
  switch (given[0]) {
    case "exec":
      if ((exec?.command ?? []).length === 0) problems.required(`${path}.exec.command`);
      break;
    case "httpGet":
      if (httpGet !== undefined) checkHttpGet(httpGet, `${path}.httpGet`, problems);
      break;
    case "tcpSocket":
      if (tcpSocket !== undefined) checkPort(tcpSocket.port, `${path}.tcpSocket.port`, problems);
      break;
    case "grpc":
      if (grpc !== undefined) problems.invalidEach(`${path}.grpc.port`, grpc.port, portNumber(grpc.port));
      break;
    case "sleep":
      if (sleep !== undefined) checkSleep(sleep.seconds, pod, `${path}.sleep`, problems);
      break;
    case undefined:
      break;
  }
}

function checkHttpGet(action: HTTPGetAction, path: string, problems: ProblemList): void {
  const { path: target = "", scheme = "", httpHeaders = [] } = action;
  if (target === "") problems.required(`${path}.path`);
  checkPort(action.port, `${path}.port`, problems);
  if (!["HTTP", "HTTPS"].includes(scheme)) problems.unsupported(`${path}.scheme`, scheme, ["HTTP", "HTTPS"]);
  for (const { name } of httpHeaders) problems.invalidEach(`${path}.httpHeaders`, name, httpHeaderName(name));
}

function checkPort(port: string | number, path: string, problems: ProblemList): void {
  problems.invalidEach(path, port, typeof port === "number" ? portNumber(port) : portName(port));
}

function checkSleep(
  seconds: number,
  { terminationGracePeriodSeconds: grace }: HandlerPod,
  path: string,
  problems: ProblemList,
): void {
  if (grace === undefined || (seconds > 0 && seconds <= grace)) return;
  problems.invalid(
    path,
    seconds,
    `must be greater than 0 and less than terminationGracePeriodSeconds (${grace}). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.`,
  );
}

const linuxSignals: readonly string[] = [
  ..."ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT".split(" "),
  ..."SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ".split(" "),
  "RTMIN",
  ...Array.from({ length: 15 }, (_, index) => `RTMIN+${index + 1}`),
  ...Array.from({ length: 14 }, (_, index) => `RTMAX-${14 - index}`),
  "RTMAX",
].map((name) => `SIG${name}`);

function checkStopSignal(stopSignal: string, { os }: HandlerPod, path: string, problems: ProblemList): void {
  if (os === undefined) {
    problems.forbidden(path, "may not be set for containers with empty `spec.os.name`");
    return;
  }
  const supported = os.name === "windows" ? ["SIGKILL", "SIGTERM"] : [...linuxSignals].sort();
  if (!supported.includes(stopSignal)) problems.unsupported(path, stopSignal, supported);
}
