import type { Status, StatusDetails } from "../../ground/model/index.ts";

/** The API server answered, and the answer is no. The message is the server's own. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly code: number;
  /** Such as NotFound, AlreadyExists, Conflict; empty when the server gave none. */
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** How long the server asks us to wait. */
  readonly retryAfterMs: number | undefined;
  /** Method and path. */
  readonly request: string;

  constructor(answer: {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly details?: StatusDetails | undefined;
    readonly retryAfterMs?: number | undefined;
    readonly request: string;
  }) {
    super(answer.message);
    this.code = answer.code;
    this.reason = answer.reason;
    this.details = answer.details;
    this.retryAfterMs = answer.retryAfterMs;
    this.request = answer.request;
  }
}

/** Where a server (or a proxy before it) gives only a number, the number decides the reason. */
const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

const longestExcerpt = 200;

export function apiErrorOf(
  request: string,
  code: number,
  body: string,
  retryAfterHeader: string | undefined,
): ApiError {
  const status = statusOf(body);
  const retrySeconds = parseSeconds(retryAfterHeader) ?? status?.details?.retryAfterSeconds;
  const excerpt = body.trim().slice(0, longestExcerpt);
  const unnamed = `the API server answered ${code} to ${request}${excerpt === "" ? "" : `: ${excerpt}`}`;
  return new ApiError({
    code,
    reason: status?.reason || (reasons[code] ?? ""),
    message: status?.message || unnamed,
    details: status?.details,
    retryAfterMs: retrySeconds === undefined ? undefined : retrySeconds * 1_000,
    request,
  });
}

/** The error that a Status object in a watch stream stands for. */
export function apiErrorOfStatus(request: string, status: Status): ApiError {
  const code = status.code ?? 500;
  const seconds = status.details?.retryAfterSeconds;
  return new ApiError({
    code,
    reason: status.reason || (reasons[code] ?? ""),
    message: status.message || `the API server ended ${request} with ${code}`,
    details: status.details,
    retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
    request,
  });
}

function statusOf(body: string): Status | undefined {
  if (!body.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && "kind" in value && value.kind === "Status"
      ? (value as Status)
      : undefined;
  } catch {
    return undefined;
  }
}

function parseSeconds(header: string | undefined): number | undefined {
  return header !== undefined && /^\d+$/.test(header) ? Number(header) : undefined;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.reason === "AlreadyExists";
}

/** Somebody else changed the object since it was read, or a precondition does not hold. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409 && error.reason !== "AlreadyExists";
}

/** What the server calls the object's uid is not what the request calls it: another object has that name now. */
export function isOtherUid(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.code !== 422) return false;
  return (error.details?.causes ?? []).some(({ field }) => field === "metadata.uid");
}

/**
 * The object would be larger than the server takes requests, or than its database takes objects. Of the latter only the
 * words tell: etcd's, or those of the connection to it.
 */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code === 413 || (error.code === 500 && /request is too large|larger than max/.test(error.message));
}

export function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.code === 403;
}

/** The resource version is too old to go on from. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 410 || error.reason === "Expired" || error.reason === "Gone");
}
