import { configKeyProblems, jsonEqual, type Problem, ProblemList } from "../../../ground/model/index.ts";
import { objectAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy } from "../rest/world.ts";

const unchangeable = "field is immutable when `immutable` is set";

/** Config maps: keys fit for file names, and no change where none is wanted. */
export const configMapStrategy: Strategy = {
  validateCreate: (object) => keyProblems(object, "data", "binaryData"),
  validateUpdate: (object, old) => [
    ...keyProblems(object, "data", "binaryData"),
    ...immutableProblems(object, old, "data", "binaryData"),
  ],
};

export const secretStrategy: Strategy = {
  admitCreate: withEncodedData,
  admitUpdate: withEncodedData,
  validateCreate: (object) => keyProblems(object, "data"),
  validateUpdate(object, old) {
    const problems = new ProblemList();
    if (object["type"] !== old["type"]) problems.invalid("type", object["type"], "field is immutable");
    return [...keyProblems(object, "data"), ...problems.problems, ...immutableProblems(object, old, "data")];
  },
};

/** Secrets may be written in plain text; they are stored and read in base64. */
function withEncodedData(object: ApiObject): ApiObject {
  const { stringData, ...rest } = object;
  const texts = Object.entries(objectAt(object, "stringData")).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString("base64"),
  ]);
  const data = { ...objectAt(object, "data"), ...Object.fromEntries(texts) };
  const { apiVersion, kind, metadata } = object;
  return {
    ...rest,
    ...{ apiVersion, kind, metadata },
    type: object["type"] ?? "Opaque",
    ...(Object.keys(data).length > 0 && { data }),
  };
}

function keyProblems(object: ApiObject, ...fields: readonly string[]): readonly Problem[] {
  const problems = new ProblemList();
  for (const field of fields) {
    for (const key of Object.keys(objectAt(object, field))) {
      problems.invalidEach(`${field}[${key}]`, key, configKeyProblems(key));
    }
  }
  return problems.problems;
}

function immutableProblems(object: ApiObject, old: ApiObject, ...fields: readonly string[]): readonly Problem[] {
  const problems = new ProblemList();
  if (old["immutable"] !== true) return problems.problems;
  if (object["immutable"] !== true) problems.forbidden("immutable", unchangeable);
  for (const field of fields) {
    if (!jsonEqual(objectAt(object, field), objectAt(old, field))) problems.forbidden(field, unchangeable);
  }
  return problems.problems;
}
