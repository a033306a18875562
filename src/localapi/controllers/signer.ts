import type { Logger, TaskScope } from "../../base/index.ts";
import type { CertificateSigningRequest } from "../../model/index.ts";
import { CertificateAuthority, type SigningRequest } from "../auth/certificates.ts";
import { certificateSigningRequests } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import { timestamp, type World } from "../rest/world.ts";

const resource = certificateSigningRequests.storage;
const defaultLifetimeSeconds = 365 * 24 * 3600;

const signers: Readonly<Record<string, "client" | "server">> = {
  "kubernetes.io/kube-apiserver-client-kubelet": "client",
  "kubernetes.io/kube-apiserver-client": "client",
  "kubernetes.io/kubelet-serving": "server",
};

export interface SignerParts {
  readonly world: World;
  readonly authority: CertificateAuthority;
  readonly scope: TaskScope;
  readonly log: Logger;
  /** Requests of kubelets for themselves are approved without anyone being asked. */
  readonly approvesKubelets: boolean;
}

/** Approves what kubelets ask for themselves, if so wanted, and signs what is approved. */
export function runSigner(parts: SignerParts): () => void {
  const { world, scope } = parts;
  const consider = (object: ApiObject): void => {
    const { status } = asRequest(object);
    if (status?.certificate || hasCondition(object, "Denied") || hasCondition(object, "Failed")) return;
    scope.spawn(`sign ${object.metadata.name}`, async () => await decide(parts, object));
  };
  for (const object of world.store.list(resource)) consider(object);
  return world.store.subscribe(resource, ({ type, object }) => {
    if (type !== "DELETED") consider(object);
  });
}

const asRequest = (object: ApiObject): CertificateSigningRequest => object as unknown as CertificateSigningRequest;

function hasCondition(object: ApiObject, type: string): boolean {
  return asRequest(object).status?.conditions?.some((condition) => condition.type === type) === true;
}

async function decide(parts: SignerParts, object: ApiObject): Promise<void> {
  const { world, authority, log } = parts;
  const { spec } = asRequest(object);
  const use = signers[spec.signerName];
  if (use === undefined) return;
  const pem = Buffer.from(spec.request, "base64").toString();
  const request = await CertificateAuthority.readRequest(pem);
  if (!hasCondition(object, "Approved")) {
    if (parts.approvesKubelets && request !== undefined && isKubeletForItself(asRequest(object), request))
      approve(world, object);
    return;
  }
  if (request === undefined) {
    write(world, object, (status) => withCondition(status, failedCondition(world)));
    return;
  }
  const now = world.clock.now();
  const lifetimeMs = (spec.expirationSeconds ?? defaultLifetimeSeconds) * 1000;
  // Clocks differ a little; a certificate shall be valid where it is used at once.
  const validity = { from: new Date(now - 5 * 60_000), to: new Date(now + lifetimeMs) };
  const certificate = await authority.sign(pem, use, validity);
  write(world, object, (status) => ({ ...status, certificate: Buffer.from(certificate).toString("base64") }));
  log.info("Signed a certificate", { request: object.metadata.name, user: spec.username });
}

/** A node asks for itself, or a newcomer asks to become a node. */
function isKubeletForItself({ spec }: CertificateSigningRequest, request: SigningRequest): boolean {
  const { commonName, organizations, alternativeNames } = request;
  const isNode =
    commonName.startsWith("system:node:") && organizations.length === 1 && organizations[0] === "system:nodes";
  if (!isNode) return false;
  switch (spec.signerName) {
    case "kubernetes.io/kube-apiserver-client-kubelet":
      return alternativeNames.length === 0 && (spec.username === commonName || isNewcomer(spec.groups ?? []));
    case "kubernetes.io/kubelet-serving":
      return spec.username === commonName && alternativeNames.length > 0;
    default:
      return false;
  }
}

function isNewcomer(groups: readonly string[]): boolean {
  return groups.includes("system:bootstrappers") || groups.includes("system:masters");
}

function approve(world: World, object: ApiObject): void {
  const now = timestamp(world.clock.now());
  const condition = {
    type: "Approved",
    status: "True",
    reason: "AutoApproved",
    message: "Auto approving kubelet certificate after SubjectAccessReview.",
    lastUpdateTime: now,
    lastTransitionTime: now,
  };
  write(world, object, (status) => withCondition(status, condition));
}

function failedCondition(world: World): Condition {
  const now = timestamp(world.clock.now());
  const message = "The request is malformed or not signed by its own key";
  return { type: "Failed", status: "True", reason: "SignerValidationFailure", message, lastUpdateTime: now };
}

type Condition = NonNullable<NonNullable<Status>["conditions"]>[number];

function withCondition(status: Status, condition: Condition): Status {
  return { ...status, conditions: [...(status?.conditions ?? []), condition] };
}

type Status = CertificateSigningRequest["status"];

/** Writes to the request as it is by now, if it is still there. */
function write(world: World, object: ApiObject, change: (status: Status) => Status): void {
  const current = world.store.get(resource, keyOfObject(object));
  if (current === undefined || current.metadata.uid !== object.metadata.uid) return;
  const { status } = asRequest(current);
  if (status?.certificate) return;
  world.store.put(resource, { ...current, status: change(status) });
}
