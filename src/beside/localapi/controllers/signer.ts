import { isIP } from "node:net";
import { type Logger, messageOf, type TaskScope, table } from "../../../ground/base/index.ts";
import { apiTime, type CertificateSigningRequest, jsonEqual } from "../../../ground/model/index.ts";
import { CertificateAuthority, type CertificateToSign } from "../auth/certificates.ts";
import { canonicalHost, isProxyable } from "../hosts.ts";
import { listAt, stringAt } from "../json.ts";
import { certificateSigningRequests, nodes } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import type { World } from "../rest/world.ts";

const resource = certificateSigningRequests.storage;
/** The usual lifetime and the longest one, as upstream: who asks for more gets this. */
const longestLifetimeSeconds = 365 * 24 * 3600;

const signers: Readonly<Record<string, "client" | "server">> = table({
  "kubernetes.io/kube-apiserver-client-kubelet": "client",
  "kubernetes.io/kube-apiserver-client": "client",
  "kubernetes.io/kubelet-serving": "server",
});

export interface SignerParts {
  readonly world: World;
  readonly authority: CertificateAuthority;
  readonly scope: TaskScope;
  readonly log: Logger;
  /** Requests of kubelets for themselves are approved without anyone being asked. */
  readonly approvesKubelets: boolean;
  /** Names and addresses under which this server is reached; no node serves under them. */
  readonly ownHosts: readonly string[];
}

/** Approves what kubelets ask for themselves, if so wanted, and signs what is approved. */
export function runSigner(parts: SignerParts): () => void {
  const { world, scope, log } = parts;
  const consider = (object: ApiObject): void => {
    if (isSettled(object)) return;
    const { name } = object.metadata;
    scope.spawn(`sign ${name}`, async () => {
      try {
        await decide(parts, object);
      } catch (error) {
        log.error("A certificate could not be made", error, { request: name });
        if (world.store.isWritable) fail(world, object, messageOf(error));
      }
    });
  };
  for (const object of world.store.list(resource)) consider(object);
  const stops = [
    world.store.subscribe(resource, ({ type, object }) => {
      if (type !== "DELETED") consider(object);
    }),
    // A node often asks before it has told its addresses.
    world.store.subscribe(nodes.storage, ({ type, object, previous }) => {
      if (type === "DELETED" || jsonEqual(addressesOf(object), addressesOf(previous))) return;
      const user = `system:node:${object.metadata.name}`;
      for (const request of world.store.list(resource))
        if (asRequest(request).spec.username === user) consider(request);
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function isSettled(object: ApiObject): boolean {
  const hasCertificate = (asRequest(object).status?.certificate ?? "") !== "";
  return hasCertificate || hasCondition(object, "Denied") || hasCondition(object, "Failed");
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
    if (parts.approvesKubelets && request !== undefined && isKubeletForItself(parts, asRequest(object), request))
      approve(world, object);
    return;
  }
  if (request === undefined) {
    fail(world, object, "The request is malformed or not signed by its own key");
    return;
  }
  const misfit = misfitOf(spec.signerName, request);
  if (misfit !== undefined) {
    fail(world, object, misfit);
    return;
  }
  const now = world.clock.now();
  const lifetimeMs = Math.min(spec.expirationSeconds ?? longestLifetimeSeconds, longestLifetimeSeconds) * 1000;
  // Clocks differ a little; a certificate shall be valid where it is used at once.
  const validity = { from: new Date(now - 5 * 60_000), to: new Date(now + lifetimeMs) };
  const certificate = await authority.sign(pem, use, validity);
  write(world, object, (status) => ({ ...status, certificate: Buffer.from(certificate).toString("base64") }));
  log.info("Signed a certificate", { request: object.metadata.name, user: spec.username });
}

/** Why a signer does not sign this, whoever approved it: who reads the name of the signer only must not be deceived. */
function misfitOf(signerName: string, request: CertificateToSign): string | undefined {
  const { organizations, alternativeNames } = request;
  switch (signerName) {
    case "kubernetes.io/kube-apiserver-client":
      if (!organizations.includes("system:masters")) return undefined;
      return "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    case "kubernetes.io/kube-apiserver-client-kubelet":
      if (!isOfNode(request)) return notOfNode;
      return alternativeNames.length === 0 ? undefined : "DNS, IP, email and URI subjectAltNames are not allowed";
    case "kubernetes.io/kubelet-serving":
      if (!isOfNode(request)) return notOfNode;
      if (alternativeNames.some(({ type }) => type !== "dns" && type !== "ip")) {
        return "Email and URI subjectAltNames are not allowed";
      }
      return alternativeNames.length > 0 ? undefined : "DNS or IP subjectAltName is required";
  }
  return undefined;
}

const notOfNode = 'subject organization is not system:nodes, or subject common name does not begin with "system:node:"';

function isOfNode({ commonName, organizations }: CertificateToSign): boolean {
  return commonName.startsWith("system:node:") && organizations.length === 1 && organizations[0] === "system:nodes";
}

/** A node asks for itself, or a newcomer asks to become a node. */
function isKubeletForItself(
  parts: SignerParts,
  { spec }: CertificateSigningRequest,
  request: CertificateToSign,
): boolean {
  const { commonName, alternativeNames } = request;
  if (!isOfNode(request)) return false;
  switch (spec.signerName) {
    case "kubernetes.io/kube-apiserver-client-kubelet":
      return alternativeNames.length === 0 && (spec.username === commonName || isNewcomer(spec.groups ?? []));
    case "kubernetes.io/kubelet-serving":
      return spec.username === commonName && alternativeNames.length > 0 && areOwnNames(parts, request);
    default:
      return false;
  }
}

/**
 * A node may serve under the addresses its Node tells. As it tells those itself, it gets none that this server or another
 * node is reached by: who else's name is wanted waits for a person.
 */
function areOwnNames({ world, ownHosts }: SignerParts, { commonName, alternativeNames }: CertificateToSign): boolean {
  const name = commonName.slice("system:node:".length);
  const own = new Set(addressesOf(world.store.get(nodes.storage, name)));
  const others = new Set<string>();
  for (const node of world.store.each(nodes.storage)) {
    if (node.metadata.name !== name) for (const address of addressesOf(node)) others.add(address);
  }
  return alternativeNames.every(({ type, value }) => {
    const host = canonicalHost(value);
    const isKnownType = type === "ip" ? isIP(host) !== 0 : type === "dns" && isIP(host) === 0;
    return isKnownType && own.has(host) && !others.has(host) && !isReserved(host, ownHosts);
  });
}

function addressesOf(node: ApiObject | undefined): readonly string[] {
  return listAt(node, "status", "addresses").map((address) => canonicalHost(stringAt(address, "address")));
}

/** What clients of the API may take for its address, or for that of a service. */
function isReserved(host: string, ownHosts: readonly string[]): boolean {
  if (ownHosts.some((own) => canonicalHost(own) === host)) return true;
  if (isIP(host) !== 0) return !isProxyable(host);
  return host.includes("*") || /(^|\.)(localhost|svc|cluster\.local)$/.test(host) || host.startsWith("kubernetes.");
}

function isNewcomer(groups: readonly string[]): boolean {
  return groups.includes("system:bootstrappers") || groups.includes("system:masters");
}

function approve(world: World, object: ApiObject): void {
  const now = apiTime(world.clock.now());
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

function fail(world: World, object: ApiObject, message: string): void {
  const lastUpdateTime = apiTime(world.clock.now());
  const condition = { type: "Failed", status: "True", reason: "SignerValidationFailure", message, lastUpdateTime };
  write(world, object, (status) => withCondition(status, condition));
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
