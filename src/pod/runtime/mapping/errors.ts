import { messageOf } from "../../../ground/base/index.ts";

/** The pod asks for something that cannot be translated for the runtime; its message is meant for the pod's owner. */
export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
}

/** Why a container's configuration could not be made; shown as the container's waiting state. */
export class ContainerConfigError extends ConfigError {
  override readonly name = "ContainerConfigError";
  readonly reason = "CreateContainerConfigError";
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}
