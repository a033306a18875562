import type { ContainerStatusResponse, CreateContainerResponse } from "./gen/runtime/v1/container.ts";
import type { ImageStatusResponse, PullImageResponse } from "./gen/runtime/v1/image.ts";
import type { PodSandboxStatusResponse, RunPodSandboxResponse } from "./gen/runtime/v1/sandbox.ts";
import type { StatusResponse, VersionResponse } from "./gen/runtime/v1/status.ts";
import type { CriOperation } from "./operations.ts";

/** What is wrong with a response the runtime sent as a success; undefined when the agent can rely on it. */
export function problemWith(operation: CriOperation, response: unknown): string | undefined {
  switch (operation) {
    case "version":
      return missingVersionFields(response as VersionResponse);
    case "runPodSandbox":
      return (response as RunPodSandboxResponse).podSandboxId === ""
        ? "PodSandboxId is not set for sandbox"
        : undefined;
    case "createContainer":
      return (response as CreateContainerResponse).containerId === ""
        ? "ContainerId is not set for container"
        : undefined;
    case "exec":
    case "attach":
    case "portForward":
      return (response as { url: string }).url === "" ? "URL is not set" : undefined;
    case "podSandboxStatus":
      return sandboxStatusProblem(response as PodSandboxStatusResponse);
    case "containerStatus":
      return containerStatusProblem(response as ContainerStatusResponse);
    case "status":
      return ((response as StatusResponse).status?.conditions.length ?? 0) < 2
        ? "RuntimeReady or NetworkReady condition are not set"
        : undefined;
    case "imageStatus":
      return imageProblem(response as ImageStatusResponse);
    case "pullImage":
      return (response as PullImageResponse).imageRef === "" ? "imageRef of the pulled image is not set" : undefined;
    default:
      return undefined;
  }
}

function missingVersionFields(response: VersionResponse): string | undefined {
  const missing = unset({
    Version: response.version,
    RuntimeName: response.runtimeName,
    RuntimeVersion: response.runtimeVersion,
    RuntimeApiVersion: response.runtimeApiVersion,
  });
  return missing && `not all fields are set in VersionResponse (missing ${missing})`;
}

function sandboxStatusProblem({ status }: PodSandboxStatusResponse): string | undefined {
  if (status === undefined) return "pod sandbox status is nil";
  const missing = unset({
    Id: status.id,
    "Metadata.Name": status.metadata?.name,
    "Metadata.Namespace": status.metadata?.namespace,
    "Metadata.Uid": status.metadata?.uid,
    CreatedAt: status.createdAt,
  });
  return missing && `not all fields are set in PodSandboxStatus (missing ${missing})`;
}

function containerStatusProblem({ status }: ContainerStatusResponse): string | undefined {
  if (status === undefined) return "container status is nil";
  const missing = unset({
    Id: status.id,
    "Metadata.Name": status.metadata?.name,
    CreatedAt: status.createdAt,
    "Image.Image": status.image?.image,
    ImageRef: status.imageRef,
  });
  return missing && `not all fields are set in ContainerStatus (missing ${missing})`;
}

function imageProblem({ image }: ImageStatusResponse): string | undefined {
  if (image === undefined) return undefined;
  const missing = unset({ Id: image.id, Size: image.size });
  return missing && `Id or size of image is not set (missing ${missing})`;
}

/** Names of the fields without a value, or undefined when all have one. */
function unset(fields: Readonly<Record<string, string | bigint | undefined>>): string | undefined {
  const names = Object.entries(fields).flatMap(([name, value]) => (value ? [] : [name]));
  return names.length === 0 ? undefined : names.join(", ");
}
