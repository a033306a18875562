import {
  type Capability,
  LinuxContainerSecurityContext,
  LinuxSandboxSecurityContext,
  type NamespaceOption,
  SecurityProfile_ProfileType as ProfileType,
  type SELinuxOption,
  SupplementalGroupsPolicy,
} from "../../../connections/cri/index.ts";
import { oncePer } from "../../../ground/base/index.ts";
import type {
  Capabilities,
  Container,
  IdentifiedPod,
  PodContainer,
  PodSecurityContext,
  SELinuxOptions,
} from "../../../ground/model/index.ts";
import { containersOf } from "../../../ground/model/index.ts";
import type { ImageUser } from "./context.ts";
import { ConfigError } from "./errors.ts";
import { procPaths } from "./proc-paths.ts";
import { appArmorProfile, type SeccompSettings, seccompProfile } from "./profiles.ts";

export interface SecurityFacts {
  readonly namespaces: NamespaceOption;
  /** Groups that the pod's volumes ask for. */
  readonly volumeGroups: readonly number[];
}

// The sandbox is described anew for each container that starts in it.
const hasPrivileged = oncePer((containers: readonly PodContainer[]) =>
  containers.some(({ container }) => container.securityContext?.privileged === true),
);

/** The sandbox runs nothing of the user's, so it is confined whatever the pod asks for its containers. */
export function sandboxSecurityContext(pod: IdentifiedPod, facts: SecurityFacts): LinuxSandboxSecurityContext {
  const context = LinuxSandboxSecurityContext.fromPartial({
    // A runtime refuses a privileged container in a sandbox that is not.
    privileged: hasPrivileged(containersOf(pod)),
    seccomp: { profileType: ProfileType.RuntimeDefault },
  });
  const wanted = pod.spec.securityContext;
  if (wanted === undefined) return context;
  context.namespaceOptions = facts.namespaces;
  context.runAsUser = int64Value(wanted.runAsUser);
  context.runAsGroup = int64Value(wanted.runAsGroup);
  context.selinuxOptions = selinuxOption(wanted.seLinuxOptions);
  context.supplementalGroups = [
    ...fsGroup(wanted),
    ...extraGroups(wanted, facts.volumeGroups),
    ...(wanted.supplementalGroups ?? []),
  ].map(BigInt);
  context.supplementalGroupsPolicy = groupsPolicy(wanted);
  return context;
}

export interface ContainerSecurityFacts extends SecurityFacts, SeccompSettings {
  readonly image: ImageUser;
  readonly thermalThrottlePaths: readonly string[];
}

export function containerSecurityContext(
  pod: IdentifiedPod,
  container: Container,
  facts: ContainerSecurityFacts,
): LinuxContainerSecurityContext {
  const own = container.securityContext ?? {};
  const ofPod = pod.spec.securityContext ?? {};
  const runAsUser = own.runAsUser ?? ofPod.runAsUser;
  const appArmor = appArmorProfile(pod, container);
  const paths = procPaths(own.procMount, facts.thermalThrottlePaths);
  const context = LinuxContainerSecurityContext.fromPartial({
    privileged: own.privileged ?? false,
    readonlyRootfs: own.readOnlyRootFilesystem ?? false,
    noNewPrivs: own.allowPrivilegeEscalation === false,
    maskedPaths: [...paths.masked],
    readonlyPaths: [...paths.readOnly],
    apparmorProfile: appArmor.text,
    supplementalGroups: [
      ...fsGroup(ofPod),
      ...(ofPod.supplementalGroups ?? []),
      ...extraGroups(ofPod, facts.volumeGroups),
    ].map(BigInt),
    supplementalGroupsPolicy: groupsPolicy(ofPod),
  });
  context.capabilities = capability(own.capabilities);
  context.namespaceOptions = facts.namespaces;
  context.selinuxOptions = selinuxOption(own.seLinuxOptions ?? ofPod.seLinuxOptions);
  context.runAsGroup = int64Value(own.runAsGroup ?? ofPod.runAsGroup);
  context.seccomp = seccompProfile(pod, container, facts);
  context.apparmor = appArmor.profile;
  if (runAsUser !== undefined) context.runAsUser = int64Value(runAsUser);
  else if (facts.image.uid !== undefined || !facts.image.username) context.runAsUser = { value: facts.image.uid ?? 0n };
  else context.runAsUsername = facts.image.username;
  return context;
}

function fsGroup(context: PodSecurityContext): readonly number[] {
  return context.fsGroup === undefined ? [] : [context.fsGroup];
}

function extraGroups(context: PodSecurityContext, volumeGroups: readonly number[]): readonly number[] {
  return volumeGroups.filter((group) => !context.supplementalGroups?.includes(group));
}

function groupsPolicy({ supplementalGroupsPolicy: policy }: PodSecurityContext): SupplementalGroupsPolicy {
  if (policy === undefined || policy === "Merge") return SupplementalGroupsPolicy.Merge;
  if (policy === "Strict") return SupplementalGroupsPolicy.Strict;
  throw new ConfigError(`unsupported supplementalGroupsPolicy: ${policy}`);
}

function capability(wanted: Capabilities | undefined): Capability | undefined {
  if (wanted === undefined) return undefined;
  return {
    addCapabilities: [...(wanted.add ?? [])],
    dropCapabilities: [...(wanted.drop ?? [])],
    addAmbientCapabilities: [],
  };
}

function selinuxOption(wanted: SELinuxOptions | undefined): SELinuxOption | undefined {
  if (wanted === undefined) return undefined;
  const { user = "", role = "", type = "", level = "" } = wanted;
  return { user, role, type, level };
}

function int64Value(value: number | undefined): { value: bigint } | undefined {
  return value === undefined ? undefined : { value: BigInt(value) };
}
