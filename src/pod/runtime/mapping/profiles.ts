import { join } from "node:path";
import { SecurityProfile_ProfileType as ProfileType, type SecurityProfile } from "../../../connections/cri/index.ts";
import type { AppArmorProfile, Container, IdentifiedPod } from "../../../ground/model/index.ts";
import { ConfigError } from "./errors.ts";

const runtimeDefault: SecurityProfile = { profileType: ProfileType.RuntimeDefault, localhostRef: "" };
const unconfined: SecurityProfile = { profileType: ProfileType.Unconfined, localhostRef: "" };

export interface SeccompSettings {
  readonly rootDir: string;
  readonly seccompDefault: boolean;
}

export function seccompProfile(pod: IdentifiedPod, container: Container, settings: SeccompSettings): SecurityProfile {
  const profile = container.securityContext?.seccompProfile ?? pod.spec.securityContext?.seccompProfile;
  if (profile === undefined) return settings.seccompDefault ? runtimeDefault : unconfined;
  if (profile.type === "RuntimeDefault") return runtimeDefault;
  if (profile.type !== "Localhost") return unconfined;
  if (!profile.localhostProfile) {
    throw new ConfigError("localhostProfile must be set if seccompProfile type is Localhost.");
  }
  return {
    profileType: ProfileType.Localhost,
    localhostRef: join(settings.rootDir, "seccomp", profile.localhostProfile),
  };
}

export interface AppArmor {
  readonly profile: SecurityProfile | undefined;
  /** The same in the text form that older runtimes read. */
  readonly text: string;
}

const annotationPrefix = "container.apparmor.security.beta.kubernetes.io/";
const localhostPrefix = "localhost/";

export function appArmorProfile(pod: IdentifiedPod, container: Container): AppArmor {
  const wanted =
    container.securityContext?.appArmorProfile ??
    annotatedProfile(pod.metadata.annotations?.[`${annotationPrefix}${container.name}`]) ??
    pod.spec.securityContext?.appArmorProfile;
  if (wanted === undefined) return { profile: undefined, text: "" };
  switch (wanted.type) {
    case "RuntimeDefault":
      return { profile: runtimeDefault, text: "runtime/default" };
    case "Unconfined":
      return { profile: unconfined, text: "unconfined" };
    case "Localhost": {
      const name = wanted.localhostProfile;
      if (name === undefined) throw new ConfigError("missing localhost apparmor profile name");
      return { profile: { profileType: ProfileType.Localhost, localhostRef: name }, text: `${localhostPrefix}${name}` };
    }
    default:
      throw new ConfigError(`unknown apparmor profile type: "${wanted.type}"`);
  }
}

/** An empty or unreadable annotation counts as none. */
function annotatedProfile(annotation: string | undefined): AppArmorProfile | undefined {
  if (annotation === "runtime/default") return { type: "RuntimeDefault" };
  if (annotation === "unconfined") return { type: "Unconfined" };
  if (annotation?.startsWith(localhostPrefix)) {
    return { type: "Localhost", localhostProfile: annotation.slice(localhostPrefix.length) };
  }
  return undefined;
}
