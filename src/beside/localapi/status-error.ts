import { goQuote } from "../../ground/base/index.ts";
import { describeProblem, type Problem, type ProblemKind } from "../../ground/model/index.ts";
import type { JsonObject } from "./json.ts";

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly retryAfterSeconds?: number;
  readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
}

/** What a client reads as a Status object instead of what it asked for. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  status(): JsonObject {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason !== "" && { reason: this.reason }),
      ...(this.details !== undefined && { details: this.details }),
      code: this.code,
    };
  }
}

/** How errors name the resource they are about, such as `leases.coordination.k8s.io`. */
export interface Subject {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

const qualified = (name: string, group: string): string => (group === "" ? name : `${name}.${group}`);

function detailsOf({ group, plural }: Subject, name: string): StatusDetails {
  return { ...(name !== "" && { name }), ...(group !== "" && { group }), kind: plural };
}

export function notFound(subject: Subject, name: string): StatusError {
  const message = `${qualified(subject.plural, subject.group)} ${goQuote(name)} not found`;
  return new StatusError(404, "NotFound", message, detailsOf(subject, name));
}

export function noSuchPath(): StatusError {
  return new StatusError(404, "NotFound", "the server could not find the requested resource", {});
}

export function alreadyExists(subject: Subject, name: string): StatusError {
  const message = `${qualified(subject.plural, subject.group)} ${goQuote(name)} already exists`;
  return new StatusError(409, "AlreadyExists", message, detailsOf(subject, name));
}

export function conflict(subject: Subject, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(subject.plural, subject.group)} ${goQuote(name)}: ${why}`;
  return new StatusError(409, "Conflict", message, detailsOf(subject, name));
}

export const modifiedMeanwhile =
  "the object has been modified; please apply your changes to the latest version and try again";

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

export function forbidden(subject: Subject, name: string, why: string, causes?: StatusDetails["causes"]): StatusError {
  const what = qualified(subject.plural, subject.group);
  const message = name === "" ? `${what} is forbidden: ${why}` : `${what} ${goQuote(name)} is forbidden: ${why}`;
  return new StatusError(403, "Forbidden", message, {
    ...detailsOf(subject, name),
    ...(causes !== undefined && { causes }),
  });
}

export function methodNotAllowed(): StatusError {
  return new StatusError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

export function expired(message: string): StatusError {
  return new StatusError(410, "Expired", message);
}

const reasons: Readonly<Record<ProblemKind, string>> = {
  required: "FieldValueRequired",
  invalid: "FieldValueInvalid",
  unsupported: "FieldValueNotSupported",
  duplicate: "FieldValueDuplicate",
  forbidden: "FieldValueForbidden",
  notFound: "FieldValueNotFound",
  tooLong: "FieldValueTooLong",
  tooMany: "FieldValueTooMany",
};

/** The object was understood but is not acceptable; every problem is named. */
export function invalid(subject: Subject, name: string, problems: readonly Problem[]): StatusError {
  const { group, kind } = subject;
  const texts = problems.map((problem) => describeProblem(problem));
  const what = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const causes = problems.map(({ kind: problem = "invalid", field, message }) => ({
    reason: reasons[problem],
    message,
    field,
  }));
  const details = {
    ...(name !== "" && { name }),
    ...(group !== "" && { group }),
    ...(kind !== "" && { kind }),
    causes,
  };
  return new StatusError(422, "Invalid", `${qualified(kind, group)} ${goQuote(name)} is invalid: ${what}`, details);
}
