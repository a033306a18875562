import { apiTime, jsonEqual, type Problem, ProblemList } from "../../../ground/model/index.ts";
import { isObject, listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy, World } from "../rest/world.ts";

/** Certificate signing requests: who asks is written into them, and what is asked for never changes. */
export const signingRequestStrategy: Strategy = {
  admitCreate(object, _world, { user }) {
    const { username, uid, groups, extra, ...asked } = objectAt(object, "spec");
    const asker = {
      username: user.name,
      ...(user.uid !== undefined && { uid: user.uid }),
      groups: user.groups,
      ...(user.extra !== undefined && { extra: user.extra }),
    };
    return { ...object, spec: { ...asked, ...asker }, status: {} };
  },
  validateCreate: problemsOf,
  admitUpdate: (object, old) => ({ ...object, spec: old["spec"] }),
  admitSubresource(name, object, old, world) {
    const status = objectAt(object, "status");
    const oldStatus = objectAt(old, "status");
    // Who approves does not sign, and the other way round.
    const kept = name === "approval" ? { ...oldStatus, conditions: status["conditions"] } : { ...status };
    return { ...old, metadata: object.metadata, status: withTimes(kept, oldStatus, world) };
  },
  validateUpdate(object, old) {
    const problems = new ProblemList();
    if (!jsonEqual(object["spec"], old["spec"])) problems.forbidden("spec", "field is immutable");
    return problems.problems;
  },
};

function withTimes(status: Readonly<Record<string, unknown>>, old: object, world: World): object {
  const now = apiTime(world.clock.now());
  const earlier = new Map(listAt(old, "conditions").map((condition) => [stringAt(condition, "type"), condition]));
  const conditions = listAt(status, "conditions")
    .filter(isObject)
    .map((condition) => {
      const before = earlier.get(stringAt(condition, "type"));
      const since = stringAt(before, "lastTransitionTime") || now;
      return { lastUpdateTime: now, lastTransitionTime: since, ...condition };
    });
  return { ...status, ...(conditions.length > 0 && { conditions }) };
}

/** A key and some hundred names fit in. Reading one takes time that nobody else is served in. */
const longestRequest = 64 * 1024;

function problemsOf(object: ApiObject): readonly Problem[] {
  const problems = new ProblemList();
  const spec = objectAt(object, "spec");
  const encoded = stringAt(spec, "request");
  if (encoded.length > longestRequest) {
    problems.invalidHidden("spec.request", `may not be longer than ${longestRequest} bytes`);
    return problems.problems;
  }
  const pem = Buffer.from(encoded, "base64").toString();
  if (!pem.includes("BEGIN CERTIFICATE REQUEST")) {
    problems.invalidHidden("spec.request", "PEM block type must be CERTIFICATE REQUEST");
  }
  if (stringAt(spec, "signerName") === "") problems.required("spec.signerName");
  if (listAt(spec, "usages").length === 0) problems.required("spec.usages");
  const { expirationSeconds } = spec;
  if (typeof expirationSeconds === "number" && expirationSeconds < 600) {
    problems.invalid(
      "spec.expirationSeconds",
      expirationSeconds,
      "may not specify a duration less than 600 seconds (10 minutes)",
    );
  }
  return problems.problems;
}
