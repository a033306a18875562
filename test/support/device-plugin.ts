// A device plugin with a gRPC server of its own, which behaves as it is told. As a process it takes what to do from its
// input, one JSON object per line (see PluginOrders), and writes a line when it has done it.
// Usage: device-plugin DIRECTORY NAME RESOURCE
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import {
  type AllocateRequest,
  AllocateResponse,
  DevicePluginDefinition,
  ListAndWatchResponse,
  type PreferredAllocationRequest,
  type PreStartContainerRequest,
  RegistrationDefinition,
} from "../../src/connections/plugins/gen/device-plugin.ts";
import { callPlugin } from "../../src/connections/plugins/rpc.ts";
import { messageOf } from "../../src/ground/base/index.ts";

export interface PluginOrders {
  /** The devices it has from now on; "!id" is out of order, "id@1" lies on NUMA node 1. */
  readonly devices?: readonly string[];
  /** How it answers Allocate, and lists. */
  readonly behave?: "well" | "hang" | "rubbish" | "refuse" | "endlessly";
  readonly preStart?: boolean;
  readonly prefers?: readonly string[];
  /** Tells the agent that it is there. */
  readonly register?: boolean;
  readonly endList?: boolean;
}

type ListCall = ServerWritableStream<unknown, Buffer>;

export class TestDevicePlugin {
  readonly calls: string[] = [];
  readonly #directory: string;
  readonly #name: string;
  readonly #resource: string;
  readonly #lists = new Set<ListCall>();
  #server: Server | undefined;
  #devices: readonly string[] = [];
  #behave: NonNullable<PluginOrders["behave"]> = "well";
  #preStart = false;
  #prefers: readonly string[] | undefined;

  constructor(directory: string, name: string, resource: string) {
    this.#directory = directory;
    this.#name = name;
    this.#resource = resource;
  }

  get socketPath(): string {
    return join(this.#directory, this.#name);
  }

  async start(): Promise<void> {
    const { fullName, methods } = DevicePluginDefinition;
    const raw = {
      requestStream: false,
      requestSerialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    };
    const service = Object.fromEntries(
      Object.entries(methods).map(([key, { name, requestType, responseStream }]) => [
        key,
        {
          ...raw,
          path: `/${fullName}/${name}`,
          responseStream,
          requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
        },
      ]),
    );
    const server = new Server({ "grpc.enable_channelz": 0, "grpc.max_send_message_length": -1 });
    server.addService(service, {
      getDevicePluginOptions: this.#unary(
        "options",
        () => ({
          preStartRequired: this.#preStart,
          getPreferredAllocationAvailable: this.#prefers !== undefined,
        }),
        methods.getDevicePluginOptions.responseType,
      ),
      listAndWatch: ((call: ListCall) => this.#list(call)) as handleServerStreamingCall<unknown, Buffer>,
      getPreferredAllocation: this.#unary(
        "preferred",
        ({ containerRequests }: PreferredAllocationRequest) => ({
          containerResponses: containerRequests.map(() => ({ deviceIDs: [...(this.#prefers ?? [])] })),
        }),
        methods.getPreferredAllocation.responseType,
      ),
      allocate: this.#unary(
        "allocate",
        ({ containerRequests }: AllocateRequest) => this.#allocated(containerRequests[0]?.devicesIds ?? []),
        AllocateResponse,
      ),
      preStartContainer: this.#unary(
        "preStart",
        (_: PreStartContainerRequest) => ({}),
        methods.preStartContainer.responseType,
      ),
    });
    await rm(this.socketPath, { force: true });
    await promisify(server.bindAsync.bind(server))(`unix:${this.socketPath}`, ServerCredentials.createInsecure());
    this.#server = server;
  }

  async stop(): Promise<void> {
    // The library leaves streams hanging when it is shut down by force, which no process that ends does.
    for (const call of this.#lists) call.end();
    this.#server?.forceShutdown();
    this.#server = undefined;
    await rm(this.socketPath, { force: true });
  }

  async obey(orders: PluginOrders): Promise<void> {
    this.#behave = orders.behave ?? this.#behave;
    this.#preStart = orders.preStart ?? this.#preStart;
    this.#prefers = orders.prefers ?? this.#prefers;
    if (orders.devices !== undefined) {
      this.#devices = orders.devices;
      for (const call of this.#lists) call.write(this.#listed());
    }
    if (orders.endList === true) for (const call of this.#lists) call.end();
    if (orders.register === true) await this.register();
  }

  async register(version = "v1beta1", resourceName = this.#resource): Promise<void> {
    const request = { version, endpoint: this.#name, resourceName, options: undefined };
    const { fullName, methods } = RegistrationDefinition;
    const bounds = { deadline: Date.now() + 20_000, signal: new AbortController().signal };
    await callPlugin(join(this.#directory, "kubelet.sock"), fullName, methods.register, request, bounds);
  }

  #allocated(ids: readonly string[]): AllocateResponse {
    return AllocateResponse.fromPartial({
      containerResponses: [
        {
          envs: { TEST_DEVICES: ids.join(",") },
          annotations: { "example.com/devices": ids.join(",") },
          mounts: [{ containerPath: "/plugin", hostPath: this.#directory, readOnly: true }],
          devices: ids.map((id) => ({ containerPath: `/dev/test-${id}`, hostPath: "/dev/null", permissions: "rw" })),
        },
      ],
    });
  }

  #listed(): Buffer {
    if (this.#behave === "rubbish") return Buffer.from([0x0a, 0x7f, 0x01]);
    const devices = this.#devices.map((text) => {
      const [id = "", node] = text.replace("!", "").split("@");
      const topology = node === undefined ? undefined : { nodes: [{ ID: BigInt(node) }] };
      return { ID: id, health: text.startsWith("!") ? "Unhealthy" : "Healthy", topology };
    });
    return Buffer.from(ListAndWatchResponse.encode({ devices }).finish());
  }

  #list(call: ListCall): void {
    this.calls.push("list");
    this.#lists.add(call);
    for (const end of ["close", "cancelled"]) call.on(end, () => this.#lists.delete(call));
    if (this.#behave === "endlessly") this.#flood(call);
    else if (this.#behave !== "hang") call.write(this.#listed());
  }

  /** As fast as the reader takes it. */
  #flood(call: ListCall): void {
    const next = (): void => {
      if (!this.#lists.has(call)) return;
      if (call.write(this.#listed())) setImmediate(next);
      else call.once("drain", next);
    };
    next();
  }

  #unary<Request, Answer>(
    name: string,
    answer: (request: Request) => Answer,
    codec: { encode(message: Answer): { finish(): Uint8Array } },
  ): handleUnaryCall<Request, Buffer> {
    return ({ request }, callback) => {
      const ids = JSON.stringify(request).match(/"[^"]*"\]/) === null ? "" : ` ${JSON.stringify(request)}`;
      this.calls.push(`${name}${ids}`);
      if (name !== "options" && this.#behave === "hang") return;
      if (name !== "options" && this.#behave === "refuse") callback({ code: 13, details: "no power" });
      else if (name !== "options" && this.#behave === "rubbish") callback(null, Buffer.from([0x0a, 0x7f, 0x01]));
      else if (name !== "options" && this.#behave === "endlessly") callback(null, Buffer.alloc(100 * 1024, 0x20));
      else callback(null, Buffer.from(codec.encode(answer(request)).finish()));
    };
  }
}

const [directory, name, resource] = process.argv[1]?.includes("device-plugin") ? process.argv.slice(2) : [];
if (directory !== undefined && name !== undefined && resource !== undefined) {
  const plugin = new TestDevicePlugin(directory, name, resource);
  await plugin.start();
  process.stdout.write("started\n");
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      await plugin.obey(JSON.parse(line) as PluginOrders);
      process.stdout.write("done\n");
    } catch (error) {
      process.stdout.write(`failed: ${messageOf(error)}\n`);
    }
  }
  process.exit(0);
}
