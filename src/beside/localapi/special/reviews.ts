import { apiTime, ProblemList } from "../../../ground/model/index.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import type { Attributes, Authorizer } from "../auth/authorize.ts";
import type { SpecialHandler } from "../http/api.ts";
import { json } from "../http/reply.ts";
import { isObject, type JsonObject, listAt, objectAt, stringAt } from "../json.ts";
import type { User } from "../rest/world.ts";
import { invalid, type StatusError } from "../status-error.ts";

/** Whom does this token speak for? */
export function tokenReviews(authenticator: Authenticator, ownAudience: string): SpecialHandler {
  return async (call) => {
    const body = await call.body();
    const asked = listAt(body, "spec", "audiences").map(String);
    const audiences = asked.length === 0 ? [ownAudience] : asked;
    const found = authenticator.readToken(stringAt(body, "spec", "token"), audiences);
    const status =
      found === undefined
        ? { user: {}, error: "invalid bearer token" }
        : { authenticated: true, user: describeUser(found.user), audiences: found.audiences };
    return json(answer(body, "TokenReview", "authentication.k8s.io/v1", status), 201);
  };
}

/** May this user do that? */
export function subjectAccessReviews(authorizer: Authorizer): SpecialHandler {
  return async (call) => {
    const body = await call.body();
    const spec = objectAt(body, "spec");
    const user = { name: stringAt(spec, "user"), groups: listAt(spec, "groups").map(String) };
    if (user.name === "" && user.groups.length === 0) {
      throw unclear("spec.user", "", "at least one of user or group must be specified");
    }
    const status = decision(authorizer, user, spec);
    return json(answer(body, kindOf(body, "SubjectAccessReview"), "authorization.k8s.io/v1", status), 201);
  };
}

/** May I do that? */
export function selfAccessReviews(authorizer: Authorizer): SpecialHandler {
  return async (call) => {
    const body = await call.body();
    const status = decision(authorizer, call.user, objectAt(body, "spec"));
    return json(answer(body, "SelfSubjectAccessReview", "authorization.k8s.io/v1", status), 201);
  };
}

/** Who am I? */
export const selfReviews: SpecialHandler = (call, world) => {
  const metadata = { creationTimestamp: apiTime(world.clock.now()) };
  const status = { userInfo: describeUser(call.user) };
  return json({ kind: "SelfSubjectReview", apiVersion: "authentication.k8s.io/v1", metadata, status }, 201);
};

function describeUser({ name, uid, groups, extra }: User): JsonObject {
  return { username: name, ...(uid !== undefined && { uid }), groups, ...(extra !== undefined && { extra }) };
}

function kindOf(body: unknown, fallback: string): string {
  return stringAt(body, "kind") || fallback;
}

function answer(body: unknown, kind: string, apiVersion: string, status: object): JsonObject {
  return { kind, apiVersion, metadata: {}, spec: objectAt(body, "spec"), status };
}

function decision(authorizer: Authorizer, user: User, spec: JsonObject): JsonObject {
  const { allowed, reason } = authorizer.decide(user, attributesOf(spec));
  return { allowed, ...(reason !== "" && { reason }) };
}

/** A question that can't be answered. Upstream forgets to say what kind of question it was. */
function unclear(field: string, found: unknown, why: string): StatusError {
  const problems = new ProblemList();
  problems.invalid(field, found, why);
  return invalid({ group: "authorization.k8s.io", kind: "", plural: "" }, "", problems.problems);
}

function attributesOf(spec: JsonObject): Attributes {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (isObject(nonResourceAttributes)) {
    return {
      type: "path",
      verb: stringAt(nonResourceAttributes, "verb"),
      path: stringAt(nonResourceAttributes, "path"),
    };
  }
  if (!isObject(resourceAttributes)) {
    const why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    throw unclear("spec.resourceAttributes", null, why);
  }
  const text = (field: string): string => stringAt(resourceAttributes, field);
  return {
    type: "resource",
    verb: text("verb"),
    group: text("group"),
    namespace: text("namespace"),
    resource: text("resource"),
    subresource: text("subresource"),
    name: text("name"),
    fieldSelector: selectorOf(objectAt(resourceAttributes, "fieldSelector")),
  };
}

/** API servers ask with the text, others with its parts. What can't be said as text is left out, which allows no more. */
function selectorOf(fieldSelector: JsonObject): string {
  const raw = stringAt(fieldSelector, "rawSelector");
  if (raw !== "") return raw;
  const parts = listAt(fieldSelector, "requirements").flatMap((requirement) => {
    const [value, ...others] = listAt(requirement, "values").map(String);
    const isOne = stringAt(requirement, "operator") === "In" && value !== undefined && others.length === 0;
    return isOne ? [`${stringAt(requirement, "key")}=${value}`] : [];
  });
  return parts.join(",");
}
