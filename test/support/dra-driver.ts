// A DRA driver with a gRPC server of its own, which behaves as it is told. As a process it takes what to do from its
// input, one JSON object per line (see DriverOrders), and writes a line when it has done it.
// Usage: dra-driver REGISTRY_DIRECTORY SOCKET NAME
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  DRAPluginDefinition,
  type NodePrepareResourcesRequest,
  NodePrepareResourcesResponse,
  type NodeUnprepareResourcesRequest,
  NodeUnprepareResourcesResponse,
} from "../../src/connections/plugins/gen/dra.ts";
import {
  DRAResourceHealthDefinition,
  NodeWatchResourcesResponse,
} from "../../src/connections/plugins/gen/dra-health.ts";
import { RegistrationDefinition } from "../../src/connections/plugins/gen/registration.ts";
import type { MethodDefinition } from "../../src/ground/grpc/index.ts";

export interface DriverOrders {
  readonly behave?: "well" | "hang" | "rubbish" | "refuse" | "endlessly";
  /** How the device "dev" of the pool "pool" is. */
  readonly health?: "HEALTHY" | "UNHEALTHY";
  /** Where specifications of CDI devices are written, as drivers do. */
  readonly cdiDirectory?: string;
  readonly versions?: readonly string[];
  /** Puts the socket by which the agent finds it. */
  readonly register?: boolean;
  readonly deregister?: boolean;
  /** Answers with what it has prepared, and how often it was called. */
  readonly tell?: boolean;
}

type HealthCall = ServerWritableStream<unknown, Buffer>;
type Generated = { readonly fullName: string; readonly methods: Readonly<Record<string, MethodDefinition>> };

export class TestDraDriver {
  readonly calls: string[] = [];
  /** Names of claims by uid. */
  readonly prepared = new Map<string, string>();
  /** What the agent said to the registration. */
  readonly told: string[] = [];
  readonly #registry: string;
  readonly #socket: string;
  readonly #name: string;
  readonly #streams = new Set<HealthCall>();
  #orders: DriverOrders = { behave: "well" };
  #server: Listening | undefined;
  #registration: Listening | undefined;

  constructor(registry: string, socket: string, name: string) {
    this.#registry = registry;
    this.#socket = socket;
    this.#name = name;
  }

  async start(): Promise<void> {
    const server = new Server({ "grpc.enable_channelz": 0, "grpc.max_send_message_length": -1 });
    for (const version of ["v1", "v1beta1"]) {
      const fullName = `k8s.io.kubelet.pkg.apis.dra.${version}.DRAPlugin`;
      serve(
        server,
        { ...DRAPluginDefinition, fullName },
        {
          nodePrepareResources: this.#unary(version, "prepare", (request: NodePrepareResourcesRequest) =>
            this.#prepare(request),
          ),
          nodeUnprepareResources: this.#unary(
            version,
            "unprepare",
            async ({ claims }: NodeUnprepareResourcesRequest) => {
              for (const { uid } of claims) this.prepared.delete(uid);
              const answers = Object.fromEntries(claims.map(({ uid }) => [uid, { error: "" }]));
              return NodeUnprepareResourcesResponse.encode({ claims: answers }).finish();
            },
          ),
        },
      );
    }
    serve(server, DRAResourceHealthDefinition, {
      nodeWatchResources: ((call: HealthCall) => {
        this.#streams.add(call);
        for (const end of ["close", "cancelled"]) call.on(end, () => this.#streams.delete(call));
        this.#sendHealth();
      }) as handleServerStreamingCall<unknown, Buffer>,
    });
    this.#server = await listen(server, this.#socket);
  }

  async obey(orders: DriverOrders): Promise<string> {
    this.#orders = { ...this.#orders, ...orders };
    if (orders.health !== undefined) this.#sendHealth();
    if (orders.register === true) await this.register();
    if (orders.deregister === true) await this.deregister();
    return orders.tell === true ? `${this.calls.join(" ")}; ${[...this.prepared.values()].sort().join(" ")}` : "done";
  }

  get registrySocket(): string {
    return join(this.#registry, `${this.#name}-reg.sock`);
  }

  async register(): Promise<void> {
    await this.deregister();
    const server = new Server({ "grpc.enable_channelz": 0 });
    const { methods } = RegistrationDefinition;
    const getInfo: handleUnaryCall<unknown, Buffer> = (_, callback) => {
      const info = {
        type: "DRAPlugin",
        name: this.#name,
        endpoint: this.#socket,
        supportedVersions: [...(this.#orders.versions ?? ["v1.DRAPlugin", "v1beta1.DRAPlugin"])],
      };
      callback(null, Buffer.from(methods.getInfo.responseType.encode(info).finish()));
    };
    const notify: handleUnaryCall<{ pluginRegistered: boolean; error: string }, Buffer> = ({ request }, callback) => {
      this.told.push(request.pluginRegistered ? "registered" : request.error);
      callback(null, Buffer.alloc(0));
    };
    serve(server, RegistrationDefinition, { getInfo, notifyRegistrationStatus: notify as never });
    this.#registration = await listen(server, this.registrySocket);
  }

  async deregister(): Promise<void> {
    this.#registration?.close();
    this.#registration = undefined;
    await rm(this.registrySocket, { force: true });
  }

  async stop(): Promise<void> {
    await this.deregister();
    for (const call of this.#streams) call.end();
    this.#server?.close();
    this.#server = undefined;
    await rm(this.#socket, { force: true });
  }

  async #prepare({ claims }: NodePrepareResourcesRequest): Promise<Uint8Array> {
    const { cdiDirectory } = this.#orders;
    for (const { uid, name } of claims) {
      this.prepared.set(uid, name);
      if (cdiDirectory !== undefined) await writeCdi(cdiDirectory, name);
    }
    const answers = claims.map(({ uid, name }) => [
      uid,
      {
        error: "",
        devices: [
          { requestNames: ["dev"], poolName: "pool", deviceName: "dev", cdiDeviceIds: [`example.com/dra=${name}`] },
        ],
      },
    ]);
    return NodePrepareResourcesResponse.encode({ claims: Object.fromEntries(answers) }).finish();
  }

  #sendHealth(): void {
    const health = { HEALTHY: 1, UNHEALTHY: 2 } as const;
    const devices = [
      {
        device: { poolName: "pool", deviceName: "dev" },
        health: health[this.#orders.health ?? "HEALTHY"],
        lastUpdatedTime: 0n,
      },
    ];
    const message = Buffer.from(NodeWatchResourcesResponse.encode({ devices }).finish());
    for (const call of this.#streams) call.write(message);
  }

  #unary<Request>(
    version: string,
    name: string,
    answer: (request: Request) => Promise<Uint8Array>,
  ): handleUnaryCall<Request, Buffer> {
    return ({ request }, callback) => {
      const { claims } = request as NodePrepareResourcesRequest;
      this.calls.push(`${version}:${name}:${claims.map((claim) => claim.name).join(",")}`);
      const { behave } = this.#orders;
      if (behave === "hang") return;
      if (behave === "refuse") callback({ code: 13, details: "no power" });
      else if (behave === "rubbish") callback(null, Buffer.from([0x0a, 0x7f, 0x01]));
      else if (behave === "endlessly") callback(null, Buffer.alloc(8 * 1024 * 1024, 0x20));
      else
        answer(request).then(
          (bytes) => callback(null, Buffer.from(bytes)),
          (error: Error) => callback(error),
        );
    };
  }
}

/** A device node and a variable, by which a container can tell that it has the device. */
async function writeCdi(directory: string, name: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const edits = {
    env: [`DRA_DEVICE=${name}`],
    deviceNodes: [{ path: `/dev/dra-${name}`, hostPath: "/dev/null", type: "c", major: 1, minor: 3 }],
  };
  const spec = { cdiVersion: "0.5.0", kind: "example.com/dra", devices: [{ name, containerEdits: edits }] };
  await writeFile(join(directory, `example.com-dra-${name}.json`), JSON.stringify(spec));
}

function serve(server: Server, { fullName, methods }: Generated, implementation: UntypedServiceImplementation): void {
  const service = Object.entries(methods).map(([key, { name, requestType, responseStream }]) => [
    key,
    {
      path: `/${fullName}/${name}`,
      requestStream: false,
      responseStream,
      requestSerialize: (bytes: Buffer) => bytes,
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  ]);
  server.addService(Object.fromEntries(service), implementation);
}

interface Listening {
  close(): void;
}

/** Like a process, it takes its connections with it when it ends, which the library alone does not do. */
async function listen(server: Server, path: string): Promise<Listening> {
  await rm(path, { force: true });
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    connections.injectConnection(socket);
  });
  listener.listen(path);
  await once(listener, "listening");
  return {
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
      connections.destroy();
      server.forceShutdown();
    },
  };
}

const [registry, socket, name] = process.argv[1]?.includes("dra-driver") ? process.argv.slice(2) : [];
if (registry !== undefined && socket !== undefined && name !== undefined) {
  const driver = new TestDraDriver(registry, socket, name);
  await driver.start();
  process.stdout.write("started\n");
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${await driver.obey(JSON.parse(line) as DriverOrders)}\n`);
  }
  process.exit(0);
}
