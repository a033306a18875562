import type {
  LinuxContainerSecurityContext,
  LinuxSandboxSecurityContext,
  SELinuxOption,
  SecurityProfile,
} from "../../../connections/cri/index.ts";
import { SecurityProfile_ProfileType as ProfileType } from "../../../connections/cri/index.ts";

type SandboxSecurity = LinuxSandboxSecurityContext | undefined;
type ContainerSecurity = LinuxContainerSecurityContext | undefined;

/** Something in the request that Docker has no way to do, or that makes no sense. */
export class MappingError extends Error {
  override readonly name = "MappingError";
}

/** Docker's `User`: a number, a name, or either with a group. */
export function userOf(security: SandboxSecurity | ContainerSecurity): string | undefined {
  if (security === undefined) return undefined;
  const username = "runAsUsername" in security ? security.runAsUsername : "";
  const user = security.runAsUser === undefined ? username : String(security.runAsUser.value);
  if (security.runAsGroup === undefined) return user === "" ? undefined : user;
  if (user === "") throw new MappingError("runAsGroup is specified without a runAsUser");
  return `${user}:${security.runAsGroup.value}`;
}

export function groupsOf(security: SandboxSecurity | ContainerSecurity): string[] {
  return (security?.supplementalGroups ?? []).map(String);
}

/** Where a profile of seccomp is named by its file, its content is needed: it is given to Docker in full. */
export function seccompFileOf(profile: SecurityProfile | undefined): string | undefined {
  if (profile?.profileType !== ProfileType.Localhost) return undefined;
  if (profile.localhostRef.startsWith("/")) return profile.localhostRef;
  throw new MappingError(`seccomp profile path must be absolute, but got relative path "${profile.localhostRef}"`);
}

/** Docker's `SecurityOpt` of a container. `seccomp` is the content of the profile's file, where there is one. */
export function securityOptions(security: ContainerSecurity, seccomp: string | undefined): string[] {
  const options = [...seccompOption(security?.seccomp, seccomp), ...selinuxOptions(security?.selinuxOptions)];
  if (security?.noNewPrivs) options.push("no-new-privileges");
  options.push(...apparmorOption(security));
  return options;
}

/** A sandbox runs our own program: it needs no more rights than it has, and Docker's own profile will do. */
export function sandboxSecurityOptions(security: SandboxSecurity): string[] {
  return ["no-new-privileges", ...selinuxOptions(security?.selinuxOptions)];
}

function seccompOption(profile: SecurityProfile | undefined, content: string | undefined): string[] {
  switch (profile?.profileType) {
    case ProfileType.RuntimeDefault:
      return [];
    case ProfileType.Localhost:
      return [`seccomp=${compact(content ?? "", profile.localhostRef)}`];
    case undefined:
    case ProfileType.Unconfined:
      return ["seccomp=unconfined"];
    default:
      throw new MappingError(`unknown seccomp profile option: ${profile?.profileType}`);
  }
}

function compact(content: string, path: string): string {
  try {
    return JSON.stringify(JSON.parse(content));
  } catch (error) {
    throw new MappingError(`cannot load seccomp profile "${path}": it is no JSON`, { cause: error });
  }
}

function apparmorOption(security: ContainerSecurity): string[] {
  switch (security?.apparmor?.profileType) {
    case ProfileType.Unconfined:
      return ["apparmor=unconfined"];
    case ProfileType.Localhost:
      return [`apparmor=${security.apparmor.localhostRef}`];
    case ProfileType.RuntimeDefault:
      return [];
    default:
      return apparmorOfName(security?.apparmorProfile ?? "");
  }
}

/** The older field, in words. */
function apparmorOfName(profile: string): string[] {
  if (profile === "unconfined") return ["apparmor=unconfined"];
  return profile.startsWith("localhost/") ? [`apparmor=${profile.slice("localhost/".length)}`] : [];
}

function selinuxOptions(options: SELinuxOption | undefined): string[] {
  if (options === undefined) return [];
  const { user, role, type, level } = options;
  const labels = Object.entries({ user, role, type, level }).filter(([, value]) => value !== "");
  return labels.map(([key, value]) => `label=${key}:${value}`);
}
