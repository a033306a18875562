import { type Behaviour, exitsAfter, ignoresTerm, runsForever } from "../../src/beside/hollow/index.ts";
import type { Container, Pod, PodSpec, Probe } from "../../src/ground/model/index.ts";
import type { Dice } from "./machine/dice.ts";
import { nodeName } from "./neighbours/api.ts";
import { deviceResource } from "./neighbours/devices.ts";
import { driverName } from "./neighbours/storage.ts";

type RestartPolicy = "Always" | "OnFailure" | "Never";

/** The exit code that rules name. */
export const ruledCode = 42;

/** What one container of a pod is meant to do. */
export interface ContainerPlan {
  readonly name: string;
  readonly role: "init" | "sidecar" | "main";
  readonly behaviours: readonly Behaviour[];
  /** Its own where it has one, or its pod's. */
  readonly restartPolicy: RestartPolicy;
  readonly ownPolicy: RestartPolicy | undefined;
  /** What happens after the exit code that its rule names, whatever its policy says. */
  readonly rule: "Restart" | "RestartAllContainers" | undefined;
  /** Answers when it is ready; the next one answers as long as it lives. */
  readonly port: number;
  readonly hasLiveness: boolean;
  readonly hasStartup: boolean;
  readonly hasReadiness: boolean;
  /** The hook after the start fails so often before it succeeds. */
  readonly failingHooks: number;
  readonly hasPostStart: boolean;
  /** It asks for a device of the plugin. */
  readonly hasDevice: boolean;
  /** The claim that it uses. */
  readonly claim: string | undefined;
}

/** What a pod asks for beyond the usual. */
export interface Extras {
  readonly device: boolean;
  readonly claim: boolean;
  /** Amounts for the pod as a whole. */
  readonly asAWhole: boolean;
  /** Each container has a hook after its start. */
  readonly hooks: boolean;
}

export const noExtras: Extras = { device: false, claim: false, asAWhole: false, hooks: false };
/** What pods have as a whole when they come. */
export const firstAmounts = { cpu: "100m", memory: "96Mi" } as const;

export interface PodPlan {
  readonly name: string;
  readonly source: "api" | "file";
  readonly pod: Pod;
  readonly containers: readonly ContainerPlan[];
}

/** A random pod of any kind. Container names are the pod's own, so that what they do can be told by name. */
export function makePod(
  dice: Dice,
  name: string,
  version: number,
  source: PodPlan["source"],
  extras = noExtras,
): PodPlan {
  const firstPort = 1_000 + (version % 2_000) * 20;
  const restartPolicy = dice.pick(["Always", "Always", "Always", "OnFailure", "Never"] as const);
  const graceSeconds = dice.pick([0, 1, 5, 30, 30, 60]);
  const plans: ContainerPlan[] = [];
  const plan = (role: ContainerPlan["role"]): Container => {
    const containerName = `${role}${plans.length}-${name}-${version}`.toLowerCase();
    const hasProbes = role !== "init";
    const ownPolicy =
      role === "main" && dice.chance(0.2) ? dice.pick(["Always", "OnFailure", "Never"] as const) : undefined;
    const policy = role === "sidecar" ? "Always" : (ownPolicy ?? restartPolicy);
    const isFirst = role === "main" && !plans.some((each) => each.role === "main");
    const hasRule = ownPolicy !== undefined && dice.chance(0.6);
    const made: ContainerPlan = {
      name: containerName,
      role,
      behaviours: behavioursOf(dice, role, policy, hasRule),
      restartPolicy: policy,
      ownPolicy,
      rule: hasRule ? dice.pick(["Restart", "Restart", "RestartAllContainers"] as const) : undefined,
      port: firstPort + 2 * plans.length,
      hasLiveness: hasProbes && dice.chance(0.3),
      hasStartup: hasProbes && dice.chance(0.2),
      hasReadiness: hasProbes && dice.chance(0.5),
      failingHooks: dice.chance(0.2) ? dice.whole(1, 2) : 0,
      hasPostStart: hasProbes && (dice.chance(0.15) || extras.hooks),
      hasDevice: isFirst && extras.device,
      claim: isFirst && extras.claim ? claimOf(name, version) : undefined,
    };
    plans.push(made);
    return containerOf(dice, made, graceSeconds, restartPolicy === "Always");
  };
  const initContainers: Container[] = [];
  for (let count = dice.pick([0, 0, 0, 1, 2]); count > 0; count--) {
    if (dice.chance(0.4)) initContainers.push({ ...plan("sidecar"), restartPolicy: "Always" });
    else initContainers.push(plan("init"));
  }
  const containers = Array.from({ length: dice.pick([1, 1, 2, 3]) }, () => plan("main"));
  const qos = dice.pick(["none", "none", "requests", "guaranteed"] as const);
  const volumes = volumesOf(dice, source);
  const whole = extras.asAWhole && qos === "none" ? { requests: firstAmounts, limits: firstAmounts } : undefined;
  const finished = (one: Container): Container => {
    const plan = plans.find((each) => each.name === one.name);
    return finish(one, qos, volumes, plan?.hasDevice === true, plan?.claim);
  };
  const spec: PodSpec = {
    restartPolicy,
    terminationGracePeriodSeconds: graceSeconds,
    automountServiceAccountToken: source === "api" && dice.chance(0.3),
    ...(source === "api" ? { nodeName } : {}),
    ...(dice.chance(0.15) ? { hostNetwork: true } : {}),
    ...(dice.chance(0.5) ? { nodeSelector: { "kubernetes.io/os": "linux" } } : {}),
    ...(dice.chance(0.04) ? { activeDeadlineSeconds: dice.whole(30, 600) } : {}),
    ...(dice.chance(0.2) && source === "api" ? { priorityClassName: "system-node-critical" } : {}),
    volumes: [...volumes],
    ...(whole === undefined ? {} : { resources: whole }),
    ...(extras.claim ? { resourceClaims: [{ name: "claimed", resourceClaimName: claimOf(name, version) }] } : {}),
    ...(initContainers.length > 0 ? { initContainers: initContainers.map(finished) } : {}),
    containers: containers.map(finished),
  };
  const metadata = {
    ...{ name, namespace: "default" },
    ...(source === "api" && dice.chance(0.1) ? { finalizers: ["simulation.example/hold"] } : {}),
  };
  return { name, source, pod: { apiVersion: "v1", kind: "Pod", metadata, spec }, containers: plans };
}

function claimOf(name: string, version: number): string {
  return `claim-${name}-${version}`;
}

function finish(
  container: Container,
  qos: "none" | "requests" | "guaranteed",
  volumes: PodSpec["volumes"],
  hasDevice: boolean,
  claim: string | undefined,
): Container {
  const amounts = qos === "none" ? {} : { cpu: "10m", memory: "16Mi" };
  const device = hasDevice ? { [deviceResource]: "1" } : {};
  const [requests, limits] = [
    { ...amounts, ...device },
    { ...(qos === "guaranteed" ? amounts : {}), ...device },
  ];
  const resources = {
    ...(Object.keys(requests).length > 0 ? { requests } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(claim === undefined ? {} : { claims: [{ name: "claimed" }] }),
  };
  return {
    ...container,
    ...(Object.keys(resources).length > 0 ? { resources } : {}),
    ...(volumes === undefined || volumes.length === 0
      ? {}
      : { volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/mnt/${name}` })) }),
  };
}

function volumesOf(dice: Dice, source: PodPlan["source"]): NonNullable<PodSpec["volumes"]> {
  const kinds = [
    { name: "scratch", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "node", hostPath: { path: "/etc" } },
    { name: "about", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
  ];
  const ofApi = [
    { name: "config", configMap: { name: "settings" } },
    { name: "secret", secret: { secretName: "password" } },
    { name: "own", csi: { driver: driverName } },
    { name: "claimed", persistentVolumeClaim: { claimName: "data" } },
  ];
  const possible = source === "api" ? [...kinds, ...ofApi] : kinds;
  return possible.filter(() => dice.chance(0.15));
}

/** What the instances of a container do, one after the other; the last goes for the rest. */
function behavioursOf(
  dice: Dice,
  role: ContainerPlan["role"],
  restartPolicy: RestartPolicy,
  hasRule: boolean,
): readonly Behaviour[] {
  const codes = hasRule ? [1, ruledCode, ruledCode] : [1, 2, 137];
  const fails = (): Behaviour => exitsAfter(dice.between(100, 60_000), dice.pick(codes));
  const succeeds = (): Behaviour => exitsAfter(dice.between(100, 120_000), 0);
  const serves = (): Behaviour => (dice.chance(0.15) ? ignoresTerm() : runsForever(dice.pick([0, 0, 500, 8_000])));
  const several = (make: () => Behaviour): Behaviour[] => Array.from({ length: dice.pick([0, 0, 0, 1, 3]) }, make);
  if (role === "init") return [...several(fails), exitsAfter(dice.between(100, 10_000), 0)];
  if (role === "sidecar" || restartPolicy === "Always")
    return [...several(dice.chance(0.7) ? fails : succeeds), serves()];
  if (dice.chance(0.3)) return [...several(fails), serves()];
  // What fails with the code that its rule names must not do so for ever.
  return dice.chance(0.7) || hasRule ? [...several(fails), succeeds()] : [fails()];
}

function containerOf(dice: Dice, plan: ContainerPlan, graceSeconds: number, mayRestart: boolean): Container {
  const { name, port, hasLiveness, hasReadiness, hasStartup, hasPostStart } = plan;
  const probe = (kind: string): Probe => ({
    ...dice.pick<Probe>([
      { tcpSocket: { port: kind === "readiness" ? port : port + 1 } },
      { httpGet: { port: kind === "readiness" ? port : port + 1, path: "/" } },
      { exec: { command: ["check", kind] } },
    ]),
    periodSeconds: dice.pick([2, 10, 10, 30]),
    timeoutSeconds: dice.pick([1, 5]),
    failureThreshold: kind === "startup" ? 30 : dice.pick([1, 3]),
    ...(dice.chance(0.2) ? { initialDelaySeconds: dice.whole(1, 20) } : {}),
  });
  const command = { exec: { command: ["hook", "stop"] } };
  const preStop = dice.pick(graceSeconds > 2 ? [command, { sleep: { seconds: 2 } }] : [command]);
  const lifecycle = {
    ...(hasPostStart ? { postStart: { exec: { command: ["hook", "start"] } } } : {}),
    ...(plan.role !== "init" && dice.chance(0.1) ? { preStop } : {}),
  };
  const { ownPolicy, rule, role } = plan;
  return {
    name,
    ...(ownPolicy === undefined ? {} : { restartPolicy: ownPolicy }),
    ...(rule === undefined
      ? {}
      : { restartPolicyRules: [{ action: rule, exitCodes: { operator: "In", values: [ruledCode] } }] }),
    ...(role !== "init" && mayRestart && ownPolicy === undefined && dice.chance(0.2)
      ? { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] }
      : {}),
    image: dice.pick(["busybox:1", "busybox:1", "busybox:1", "app:1", "slow:1"]),
    ...(hasLiveness ? { livenessProbe: probe("liveness") } : {}),
    ...(hasReadiness ? { readinessProbe: probe("readiness") } : {}),
    ...(hasStartup ? { startupProbe: probe("startup") } : {}),
    ...(Object.keys(lifecycle).length > 0 ? { lifecycle } : {}),
  };
}
