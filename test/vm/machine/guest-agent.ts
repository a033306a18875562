import { baseImageNames } from "../../../src/beside/cli/machine/index.ts";
import type { Pod } from "../../../src/ground/model/index.ts";
import type { VirtualMachine } from "./machine.ts";
import { progress } from "./progress.ts";

const agentRoot = "/var/lib/kubelet";
const manifestDirectory = "/etc/kubernetes/manifests";
const apiDirectory = "/var/lib/nodelet-api";
const dropIns = "/etc/systemd/system/nodelet.service.d";

export interface GuestAgentOptions {
  /** More fields of the KubeletConfiguration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** With an API server in the machine docs/nodelet.service runs as it is; without, it only loses its kubeconfig. */
  readonly api?: boolean;
  /** More lines for the unit's [Service] section. */
  readonly service?: readonly string[];
}

/** The agent in a machine, as docs/nodelet.service runs it. */
export class GuestAgent {
  readonly machine: VirtualMachine;

  private constructor(machine: VirtualMachine) {
    this.machine = machine;
  }

  /** Installs and starts it; resolves when systemd has heard that it is ready. */
  static async start(machine: VirtualMachine, options: GuestAgentOptions = {}): Promise<GuestAgent> {
    const { api = false, config = {}, service = [] } = options;
    await machine.putFile(`${agentRoot}/config.yaml`, JSON.stringify({ ...agentConfig(api), ...config }));
    const lines = api ? service : ["ExecStart=", standalone, ...service];
    await machine.putFile(`${dropIns}/test.conf`, ["[Service]", ...lines, ""].join("\n"));
    if (api) await startApi(machine);
    await machine.run(
      `mkdir -p ${manifestDirectory} && cp /opt/nodelet/docs/nodelet.service /etc/systemd/system/ && ` +
        "systemctl daemon-reload && systemctl --quiet enable nodelet && systemctl start nodelet",
    );
    progress(`${machine.name}: the agent is ready`);
    return new GuestAgent(machine);
  }

  async putStaticPod(pod: Pod): Promise<void> {
    await this.putStaticPods([pod]);
  }

  /** Appears in the directory whole, as whoever writes manifests should do it. */
  async putStaticPods(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) {
      const name = `${pod.metadata?.name}.json`;
      await this.machine.putFile(`/etc/kubernetes/${name}.new`, JSON.stringify(pod));
      const moved = `mv /etc/kubernetes/${name}.new ${manifestDirectory}/${name} && sync -f ${manifestDirectory}`;
      await this.machine.run(moved);
    }
  }

  async removeStaticPod(name: string): Promise<void> {
    await this.machine.run(`rm ${manifestDirectory}/${name}.json && sync -f ${manifestDirectory}`);
  }

  /** All pods that the agent shows, by name; a static pod's ends with the node's. */
  async pods(): Promise<ReadonlyMap<string, Pod>> {
    const { items } = JSON.parse(await this.ask("/pods")) as { readonly items: readonly Pod[] | null };
    return new Map((items ?? []).map((pod) => [pod.metadata?.name ?? "", pod]));
  }

  /** How often the first container of each pod was restarted, by the pod's name. */
  async restartCounts(): Promise<ReadonlyMap<string, number>> {
    const pods = [...(await this.pods())];
    return new Map(pods.map(([name, { status }]) => [name, status?.containerStatuses?.[0]?.restartCount ?? 0]));
  }

  /** A GET on the agent's local socket. */
  async ask(path: string): Promise<string> {
    return await this.machine.run(
      `curl -sSf --max-time 60 --unix-socket ${agentRoot}/nodelet.sock 'http://agent${path}'`,
    );
  }

  /** Resolves when exactly these pods are shown, all of them ready. */
  async untilReady(names: readonly string[], withinMs = 900_000): Promise<void> {
    const wanted = [...names].sort().join(" ");
    await this.machine.putFile("/run/vm-wait-for-pods.cjs", waitForPods);
    const waiting = `node /run/vm-wait-for-pods.cjs '${wanted}' ${withinMs}`;
    const { code, output } = await this.machine.attempt(waiting, { withinMs: 2 * withinMs });
    if (code !== 0) throw new Error(`not ready in time: ${wanted}; found:\n${output}\n${await this.log(30)}`);
  }

  /** Resolves with a pod when it is evicted. */
  async untilEvicted(name: string): Promise<Pod> {
    const asked = `curl -sSf --max-time 60 --unix-socket ${agentRoot}/nodelet.sock http://agent/pods`;
    await this.machine.until(`${name} is evicted`, `${asked} | node -e '${isEvicted(name)}'`);
    const pod = (await this.pods()).get(name);
    if (pod === undefined) throw new Error(`${name} was evicted, and is no longer there`);
    return pod;
  }

  /** A property of the unit, such as MainPID. */
  async property(name: string): Promise<string> {
    return await this.machine.run(`systemctl show --value --property ${name} nodelet`);
  }

  /** Every running container and sandbox by the id of its first process: the same set means that nobody noticed. */
  async tasks(): Promise<ReadonlyMap<string, number>> {
    const lines = (await this.machine.run("ctr --namespace k8s.io tasks list")).split("\n").slice(1);
    const tasks = lines.map((line) => line.trim().split(/\s+/)).filter(([, , status]) => status === "RUNNING");
    return new Map(tasks.map(([id = "", pid]) => [id, Number(pid)]));
  }

  async log(lines = 200): Promise<string> {
    return await this.machine.run(`journalctl --unit nodelet --no-pager --output cat --lines ${lines}`);
  }
}

function isEvicted(name: string): string {
  return (
    'const { items } = JSON.parse(require("fs").readFileSync(0, "utf8")); ' +
    `const pod = items.find(({ metadata }) => metadata.name === "${name}"); ` +
    'process.exit(pod?.status?.phase === "Failed" && pod.status.reason === "Evicted" ? 0 : 1)'
  );
}

/** One process that asks again and again: starting Node for each question would keep an emulated machine busy. */
const waitForPods = `
const { request } = require("http");
const [wanted, withinMs] = process.argv.slice(2);
const deadline = performance.now() + Number(withinMs);
const isReady = (pod) => pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
function look() {
  const asked = request({ socketPath: "${agentRoot}/nodelet.sock", path: "/pods", agent: false, timeout: 20000 }, (response) => {
    let text = "";
    response.on("data", (chunk) => (text += chunk));
    response.on("end", () => judge(response.statusCode === 200 ? (JSON.parse(text).items ?? []) : undefined));
  });
  asked.on("timeout", () => asked.destroy(new Error("no answer")));
  asked.on("error", () => judge(undefined));
  asked.end();
}
function judge(pods) {
  const state = (pod) => pod.metadata.name + (isReady(pod) ? "" : " (not ready)");
  const found = pods === undefined ? "no answer" : pods.map(state).sort().join(" ");
  if (found === wanted) process.exit(0);
  if (performance.now() < deadline) return setTimeout(look, 500);
  console.log(found);
  process.exit(1);
}
look();
`;

const standalone = `ExecStart=/opt/nodelet/bin/nodelet --config=${agentRoot}/config.yaml`;

function agentConfig(api: boolean): object {
  const access = {
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: api },
      ...(api && { x509: { clientCAFile: `${apiDirectory}/ca.crt` } }),
    },
    authorization: { mode: api ? "Webhook" : "AlwaysAllow" },
  };
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    staticPodPath: manifestDirectory,
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    cgroupDriver: "systemd",
    failSwapOn: false,
    readOnlyPort: 10255,
    // Our images cannot be pulled again.
    imageGCHighThresholdPercent: 100,
    ...access,
  };
}

/** The local API server as a unit of its own, and its files where docs/nodelet.service looks for them. */
async function startApi(machine: VirtualMachine): Promise<void> {
  const server = `--dir=${apiDirectory} --listen=127.0.0.1:6443 --kubelet-host=127.0.0.1 --node=vm`;
  const unit = [
    "[Unit]",
    "Before=nodelet.service",
    "[Service]",
    `ExecStart=/opt/nodelet/bin/nodelet api-server ${server}`,
    "Restart=always",
    "RestartSec=1s",
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ];
  await machine.putFile("/etc/systemd/system/nodelet-api.service", unit.join("\n"));
  await machine.run(
    `mkdir -p /etc/kubernetes && ln -sf ${apiDirectory}/node-vm.kubeconfig /etc/kubernetes/kubelet.conf && ` +
      "systemctl daemon-reload && systemctl --quiet enable --now nodelet-api",
  );
  await machine.until("the API server has written its files", `test -s ${apiDirectory}/admin.kubeconfig`);
}

/** A pod of one busybox container. */
export function busyboxPod(
  name: string,
  script: string,
  more: { readonly resources?: object; readonly spec?: object } = {},
): Pod {
  const container = {
    name: "main",
    image: baseImageNames.busybox,
    imagePullPolicy: "Never",
    command: ["sh", "-c", script],
    ...(more.resources !== undefined && { resources: more.resources }),
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { terminationGracePeriodSeconds: 1, containers: [container], ...more.spec },
  } as Pod;
}

/** Ends at once when asked to. */
export const idleScript = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done";
