import { table } from "../../../ground/base/index.ts";
import type { Pod } from "../../../ground/model/index.ts";
import { apiTime, ProblemList } from "../../../ground/model/index.ts";
import { nodeOf } from "../admission/node-restriction.ts";
import type { ObjectIdentity, TokenSigner } from "../auth/token-signer.ts";
import type { SpecialCall, SpecialHandler } from "../http/api.ts";
import { json } from "../http/reply.ts";
import { listAt, objectAt, stringAt } from "../json.ts";
import { nodes, pods, secrets, serviceAccounts } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import type { World } from "../rest/world.ts";
import { badRequest, conflict, forbidden, invalid, notFound, type Subject } from "../status-error.ts";

const tokenRequest: Subject = { group: "authentication.k8s.io", plural: "tokenrequests", kind: "TokenRequest" };
const boundKinds = table({ Pod: pods, Secret: secrets, Node: nodes });
const shortestSeconds = 600;
const defaultSeconds = 3600;

/** POST serviceaccounts/NAME/token: a token for the account, bound to what is named. */
export function tokenRequests(signer: TokenSigner): SpecialHandler {
  return async (call, world) => {
    const body = await call.body();
    const account = world.store.get(serviceAccounts.storage, keyOf(call.namespace, call.name));
    if (account === undefined) throw notFound(serviceAccounts, call.name);
    const seconds = secondsOf(body);
    const wanted = listAt(body, "spec", "audiences").map(String);
    const audiences = wanted.length === 0 ? [signer.issuer] : wanted;
    const bound = boundObjects(call, body, world);
    const now = world.clock.now();
    const lifetime = { fromMs: now, toMs: now + seconds * 1000 };
    const claims = { namespace: call.namespace, serviceAccount: identityOf(account), audiences, ...bound };
    const status = { token: signer.issue(claims, lifetime), expirationTimestamp: apiTime(lifetime.toMs) };
    const { boundObjectRef } = objectAt(body, "spec");
    const answer = {
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: {
        name: call.name,
        namespace: call.namespace,
        uid: account.metadata.uid,
        creationTimestamp: apiTime(now),
      },
      spec: { audiences, expirationSeconds: seconds, boundObjectRef: boundObjectRef ?? null },
      status,
    };
    return json(answer, 201);
  };
}

function secondsOf(body: unknown): number {
  const { expirationSeconds = defaultSeconds } = objectAt(body, "spec");
  const problems = new ProblemList();
  if (typeof expirationSeconds !== "number" || expirationSeconds < shortestSeconds) {
    problems.invalid("spec.expirationSeconds", expirationSeconds, "may not specify a duration less than 10 minutes");
  } else if (expirationSeconds > 2 ** 32) {
    problems.invalid(
      "spec.expirationSeconds",
      expirationSeconds,
      "may not specify a duration larger than 2^32 seconds",
    );
  } else return expirationSeconds;
  throw invalid(tokenRequest, "", problems.problems);
}

interface BoundObjects {
  readonly pod?: ObjectIdentity;
  readonly node?: ObjectIdentity;
  readonly secret?: ObjectIdentity;
}

function boundObjects(call: SpecialCall, body: unknown, world: World): BoundObjects {
  const { kind, name, uid } = objectAt(body, "spec", "boundObjectRef");
  const caller = nodeOf(call.user);
  if (caller !== undefined && kind !== "Pod") {
    throw forbidden(serviceAccounts, call.name, "node requested token not bound to a pod");
  }
  if (kind === undefined) return {};
  const resource = boundKinds[String(kind)];
  if (resource === undefined) throw badRequest(`cannot bind token to object of type ${String(kind)}`);
  const key = resource.namespaced ? keyOf(call.namespace, String(name)) : String(name);
  const found = world.store.get(resource.storage, key);
  if (found === undefined) throw notFound(resource, String(name));
  if (typeof uid === "string" && uid !== "" && uid !== found.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record.`;
    const full = `${why} The object might have been deleted and then recreated`;
    // A node is stopped earlier, where it is seen whether the pod is its own.
    if (caller !== undefined) throw forbidden(serviceAccounts, call.name, full);
    throw conflict({ ...resource, plural: resource.kind }, String(name), full);
  }
  if (resource === secrets) return { secret: identityOf(found) };
  if (resource === nodes) return { node: identityOf(found) };
  return boundPod(call, found, caller, world);
}

function boundPod(call: SpecialCall, object: ApiObject, caller: string | undefined, world: World): BoundObjects {
  const { spec } = object as unknown as Pod;
  if (spec?.serviceAccountName !== call.name) {
    throw badRequest(
      `cannot bind token for serviceaccount "${call.name}" to pod running with different serviceaccount name.`,
    );
  }
  if (caller !== undefined && spec.nodeName !== caller) {
    throw forbidden(serviceAccounts, call.name, "node requested token bound to a pod scheduled on a different node");
  }
  const node = world.store.get(nodes.storage, spec.nodeName ?? "");
  return { pod: identityOf(object), ...(node !== undefined && { node: identityOf(node) }) };
}

function identityOf({ metadata }: ApiObject): ObjectIdentity {
  return { name: metadata.name ?? "", uid: metadata.uid ?? stringAt(metadata, "name") };
}
