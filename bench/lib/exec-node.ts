import { CriClient } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { TestAgent } from "../../test/support/agent.ts";
import { startContainerd, type TestContainerd } from "../../test/support/containerd.ts";
import { freePort } from "../../test/support/free-port.ts";
import { countRest, type RemoteCommand, remoteCommand } from "../../test/support/spdy.ts";

const open = {
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
};

/** A pod to run commands in, through the agent's API or straight at the runtime. */
export class ExecNode implements AsyncDisposable {
  readonly containerd: TestContainerd;
  readonly agent: TestAgent;
  readonly apiPort: number;
  readonly #cri: CriClient;
  #containerId = "";

  private constructor(containerd: TestContainerd, agent: TestAgent, port: number) {
    this.containerd = containerd;
    this.agent = agent;
    this.apiPort = port;
    const settings = { runtimeEndpoint: containerd.endpoint, imageEndpoint: "", requestTimeoutMs: 120_000 };
    this.#cri = new CriClient(settings, { clock: systemClock });
  }

  static async start(): Promise<ExecNode> {
    const containerd = await startContainerd();
    const port = await freePort();
    const agent = await TestAgent.start(containerd, { ...open, port });
    const node = new ExecNode(containerd, agent, port);
    const main = { name: "main", image: containerd.images.busybox, command: ["sleep", "1d"] };
    await agent.apply("box", { terminationGracePeriodSeconds: 0, containers: [main] });
    const pod = await agent.until("box", "it runs", ({ status }) => status?.phase === "Running");
    node.#containerId = pod.status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, "") ?? "";
    return node;
  }

  /** As kube-apiserver does it: a new connection with TLS each time. */
  async throughAgent(command: readonly string[]): Promise<RemoteCommand> {
    const words = command.map((word) => `command=${encodeURIComponent(word)}`).join("&");
    const path = `/exec/default/box-test-node/main?${words}&output=1&error=1`;
    return await remoteCommand({ port: this.apiPort, path, secure: true });
  }

  /** What an agent can't do without: the call that gives the stream's address, and the stream itself. */
  async bare(command: readonly string[]): Promise<RemoteCommand> {
    const request = { containerId: this.#containerId, cmd: [...command], stdin: false, stdout: true, stderr: true };
    const { url } = await this.#cri.runtime.exec({ ...request, tty: false });
    const { port, pathname } = new URL(url);
    return await remoteCommand({ port: Number(port), path: pathname, secure: false });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cri.close();
    await this.agent[Symbol.asyncDispose]();
    await this.containerd[Symbol.asyncDispose]();
  }
}

/** Milliseconds from asking to the exit code. */
export async function timeExec(open: Promise<RemoteCommand>): Promise<number> {
  const began = systemClock.monotonic();
  const command = await open;
  using _ = command.connection;
  command.stdout.onData = () => {};
  const code = await command.exitCode();
  if (code !== 0) throw new Error(`the command ended with ${code}`);
  return systemClock.monotonic() - began;
}

/** Milliseconds from asking until all output has come and the connection has ended. */
export async function timeOutput(open: Promise<RemoteCommand>, leastBytes: number): Promise<number> {
  const began = systemClock.monotonic();
  const command = await open;
  using _ = command.connection;
  const bytes = await countRest(command.connection);
  if (bytes < leastBytes) throw new Error(`only ${bytes} of ${leastBytes} bytes came`);
  return systemClock.monotonic() - began;
}
