import { Client, credentials } from "@grpc/grpc-js";
import {
  ContainerConfig,
  ImageSpec,
  LinuxContainerConfig,
  LinuxPodSandboxConfig,
  LinuxSandboxSecurityContext,
  NamespaceOption,
  PodSandboxConfig,
  RuntimeServiceDefinition,
} from "../../src/connections/cri/index.ts";
import type { MethodDefinition, RequestOf, ResponseOf } from "../../src/ground/grpc/index.ts";

export interface RawPod {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly ip: string;
}

export interface RawPodSettings {
  readonly endpoint: string;
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly cgroupParent: string;
  readonly hostPort?: { readonly host: number; readonly container: number };
}

/** Runs one sandbox with one container straight through CRI, without any agent. */
export async function runRawPod(settings: RawPodSettings): Promise<RawPod> {
  const { methods } = RuntimeServiceDefinition;
  const { hostPort } = settings;
  const config: PodSandboxConfig = {
    ...empty(PodSandboxConfig),
    metadata: { name: settings.name, namespace: "raw", uid: settings.name, attempt: 0 },
    hostname: settings.name,
    portMappings: hostPort
      ? [{ protocol: 0, containerPort: hostPort.container, hostPort: hostPort.host, hostIp: "" }]
      : [],
    linux: {
      ...empty(LinuxPodSandboxConfig),
      cgroupParent: settings.cgroupParent,
      securityContext: { ...empty(LinuxSandboxSecurityContext), namespaceOptions: empty(NamespaceOption) },
    },
  };
  const call = caller(settings.endpoint);
  const { podSandboxId } = await call(methods.runPodSandbox, { config, runtimeHandler: "" });
  const container: ContainerConfig = {
    ...empty(ContainerConfig),
    metadata: { name: "main", attempt: 0 },
    image: { ...empty(ImageSpec), image: settings.image },
    command: [...settings.command],
    linux: empty(LinuxContainerConfig),
  };
  const created = await call(methods.createContainer, { podSandboxId, config: container, sandboxConfig: config });
  await call(methods.startContainer, { containerId: created.containerId });
  const { status } = await call(methods.podSandboxStatus, { podSandboxId, verbose: false });
  return { sandboxId: podSandboxId, containerId: created.containerId, ip: status?.network?.ip ?? "" };
}

/** Calls one method of RuntimeService; every call has its own connection, so it works across restarts. */
function caller(endpoint: string) {
  return async <Method extends MethodDefinition>(
    method: Method,
    request: RequestOf<Method>,
  ): Promise<ResponseOf<Method>> => {
    const client = new Client(endpoint, credentials.createInsecure());
    try {
      return await new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/${RuntimeServiceDefinition.fullName}/${method.name}`,
          (value: RequestOf<Method>) => Buffer.from(method.requestType.encode(value).finish()),
          (bytes: Buffer) => method.responseType.decode(bytes) as ResponseOf<Method>,
          request,
          (error, reply) => (error || reply === undefined ? reject(error) : resolve(reply)),
        );
      });
    } finally {
      client.close();
    }
  };
}

function empty<Message>(codec: { decode(bytes: Uint8Array): Message }): Message {
  return codec.decode(new Uint8Array(0));
}
