import type { AppArmorProfile, Container, Pod, PodSpec, SeccompProfile } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkDescendingPath } from "./paths.ts";

const profileTypes: readonly string[] = ["Localhost", "RuntimeDefault", "Unconfined"];
const longestLocalhostProfile = 4095;

export function checkSeccomp(profile: SeccompProfile | undefined, path: string, problems: ProblemList): void {
  if (profile === undefined) return;
  const { type, localhostProfile } = profile;
  if (type === "") problems.required(`${path}.type`, "type is required when seccompProfile is set");
  else if (!profileTypes.includes(type)) problems.unsupported(`${path}.type`, type, profileTypes);
  if (type !== "Localhost") {
    if (localhostProfile !== undefined) {
      problems.invalid(`${path}.localhostProfile`, localhostProfile, "can only be set when seccomp type is Localhost");
    }
  } else if (localhostProfile === undefined) {
    problems.required(`${path}.localhostProfile`, "must be set when seccomp type is Localhost");
  } else {
    checkDescendingPath(localhostProfile, `${path}.localhostProfile`, problems);
  }
}

export function checkAppArmor(profile: AppArmorProfile | undefined, path: string, problems: ProblemList): void {
  if (profile === undefined) return;
  const { type, localhostProfile } = profile;
  const at = `${path}.localhostProfile`;
  if (type === "") problems.required(`${path}.type`, "type is required when appArmorProfile is set");
  else if (!profileTypes.includes(type)) problems.unsupported(`${path}.type`, type, profileTypes);
  else if (type !== "Localhost") {
    if (localhostProfile !== undefined) {
      problems.invalid(at, localhostProfile, "can only be set when AppArmor type is Localhost");
    }
  } else if (localhostProfile === undefined || localhostProfile === "") {
    problems.required(at, "must be set when AppArmor type is Localhost");
  } else {
    if (localhostProfile.trim() !== localhostProfile) {
      problems.invalid(at, localhostProfile, "must not be padded with whitespace");
    }
    if (Buffer.byteLength(localhostProfile) > longestLocalhostProfile) problems.tooLong(at, longestLocalhostProfile);
  }
}

const seccompPodKey = "seccomp.security.alpha.kubernetes.io/pod";
const seccompContainerPrefix = "container.seccomp.security.alpha.kubernetes.io/";
const appArmorContainerPrefix = "container.apparmor.security.beta.kubernetes.io/";

/** The annotations that older manifests use for profiles: well formed, and not against the fields. */
export function checkProfileAnnotations({ metadata, spec }: Pod, problems: ProblemList): void {
  const annotations = metadata?.annotations ?? {};
  const containers = spec === undefined ? [] : containersWithPaths(spec);
  for (const [key, value] of Object.entries(annotations)) {
    const at = `metadata.annotations[${key}]`;
    if (key === seccompPodKey || key.startsWith(seccompContainerPrefix)) checkSeccompAnnotation(value, at, problems);
    if (!key.startsWith(appArmorContainerPrefix)) continue;
    const name = key.slice(appArmorContainerPrefix.length);
    if (!containers.some(([container]) => container.name === name)) problems.invalid(at, name, "container not found");
    if (!["", "runtime/default", "unconfined"].includes(value) && !value.startsWith("localhost/")) {
      problems.invalid(at, value, `invalid AppArmor profile name: "${value}"`);
    }
  }
  if (spec === undefined || spec.os?.name === "windows") return;
  const { securityContext } = spec;
  checkAgreement(
    "seccomp",
    annotations[seccompPodKey],
    securityContext?.seccompProfile,
    "spec.securityContext.seccompProfile",
    problems,
  );
  for (const [{ name, securityContext: own }, path] of containers) {
    checkAgreement(
      "seccomp",
      annotations[`${seccompContainerPrefix}${name}`],
      own?.seccompProfile,
      `${path}.securityContext.seccompProfile`,
      problems,
    );
    checkAgreement(
      "apparmor",
      annotations[`${appArmorContainerPrefix}${name}`],
      own?.appArmorProfile ?? securityContext?.appArmorProfile,
      `${path}.securityContext.appArmorProfile`,
      problems,
    );
  }
}

function checkSeccompAnnotation(value: string, path: string, problems: ProblemList): void {
  if (["runtime/default", "docker/default", "unconfined"].includes(value)) return;
  if (value.startsWith("localhost/")) checkDescendingPath(value.slice("localhost/".length), path, problems);
  else problems.invalid(path, value, "must be a valid seccomp profile");
}

function checkAgreement(
  what: "seccomp" | "apparmor",
  annotation: string | undefined,
  field: SeccompProfile | AppArmorProfile | undefined,
  path: string,
  problems: ProblemList,
): void {
  if (annotation === undefined || field === undefined) return;
  const annotated = annotatedType(what, annotation);
  if (profileTypes.includes(field.type) && annotated !== field.type) {
    problems.forbidden(`${path}.type`, `${what} type in annotation and field must match`);
  } else if (field.type === "Localhost" && annotation !== `localhost/${field.localhostProfile}`) {
    problems.forbidden(`${path}.localhostProfile`, `${what} profile in annotation and field must match`);
  }
}

function annotatedType(what: "seccomp" | "apparmor", annotation: string): string | undefined {
  if (annotation.startsWith("localhost/")) return "Localhost";
  if (annotation === "runtime/default") return "RuntimeDefault";
  if (annotation === "docker/default" && what === "seccomp") return "RuntimeDefault";
  return annotation === "unconfined" ? "Unconfined" : undefined;
}

/** Every container with the path of its field. */
export function containersWithPaths(spec: PodSpec): readonly (readonly [container: Container, path: string])[] {
  return (["initContainers", "containers", "ephemeralContainers"] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, index) => [container, `spec.${list}[${index}]`] as const),
  );
}
