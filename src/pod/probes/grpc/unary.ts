import { STATUS_CODES } from "node:http";
import type { ClientHttp2Session, IncomingHttpHeaders } from "node:http2";
import { type GrpcCode, grpcCodeOf, onAbort } from "../../../ground/base/index.ts";

/** How a call ended: a message, or a status other than OK. */
export type UnaryAnswer =
  | { readonly type: "message"; readonly bytes: Buffer }
  | { readonly type: "status"; readonly code: GrpcCode; readonly message: string };

/** What a server that is no gRPC server means by its HTTP status. */
const codeOfHttpStatus: Readonly<Record<number, GrpcCode>> = {
  400: "Internal",
  401: "Unauthenticated",
  403: "PermissionDenied",
  404: "Unimplemented",
  429: "Unavailable",
  502: "Unavailable",
  503: "Unavailable",
  504: "Unavailable",
};

const answerLimitBytes = 64 * 1024;
const prefixBytes = 5;

export interface UnaryCall {
  readonly path: string;
  readonly authority: string;
  readonly userAgent: string;
  readonly timeoutMs: number;
  readonly message: Uint8Array;
}

type Head = IncomingHttpHeaders & { readonly ":status"?: number | undefined };

/** Makes one call on the connection. Rejects only with the signal's reason. */
export function callUnary(session: ClientHttp2Session, call: UnaryCall, signal: AbortSignal): Promise<UnaryAnswer> {
  return new Promise((resolve, reject) => {
    if (session.destroyed || session.closed) {
      resolve({ type: "status", code: "Unavailable", message: "the server closed the connection" });
      return;
    }
    const stream = session.request({
      ":method": "POST",
      ":path": call.path,
      ":authority": call.authority,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": call.userAgent,
      "grpc-timeout": `${Math.ceil(call.timeoutMs)}m`,
    });
    const aborting = onAbort(signal, () => {
      reject(signal.reason);
      stream.destroy();
    });
    const chunks: Buffer[] = [];
    let length = 0;
    let head: Head = {};
    let trailers: IncomingHttpHeaders = {};
    let problem = "";
    stream.on("response", (headers) => {
      head = headers;
    });
    stream.on("trailers", (headers) => {
      trailers = headers;
    });
    stream.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= answerLimitBytes) chunks.push(chunk);
      else stream.destroy(new Error("the answer is too long"));
    });
    stream.on("error", (error) => {
      problem = error.message;
    });
    stream.on("close", () => {
      aborting[Symbol.dispose]();
      const status = head["grpc-status"] === undefined ? trailers : head;
      resolve(answerOf(head, status, Buffer.concat(chunks), problem));
    });
    const prefix = Buffer.alloc(prefixBytes);
    prefix.writeUInt32BE(call.message.length, 1);
    stream.end(Buffer.concat([prefix, call.message]));
  });
}

function answerOf(head: Head, status: IncomingHttpHeaders, body: Buffer, problem: string): UnaryAnswer {
  const failed = (code: GrpcCode, message: string): UnaryAnswer => ({ type: "status", code, message });
  const httpStatus = head[":status"];
  if (httpStatus === undefined) return failed("Unavailable", `error reading from server: ${problem || "EOF"}`);
  const written = status["grpc-status"];
  if (written === undefined) {
    if (httpStatus === 200)
      return failed("Unavailable", problem || "server closed the stream without sending trailers");
    const text = `unexpected HTTP status code received from server: ${httpStatus} (${STATUS_CODES[httpStatus] ?? ""})`;
    return failed(codeOfHttpStatus[httpStatus] ?? "Unknown", text);
  }
  const code = grpcCodeOf(Number(written)) ?? "Unknown";
  if (code !== "OK") return failed(code, percentDecoded(String(status["grpc-message"] ?? "")));
  if (body.length < prefixBytes || body.length < prefixBytes + body.readUInt32BE(1)) {
    return failed("Internal", "the server sent no whole message");
  }
  if (body[0] !== 0) return failed("Unimplemented", "the server sent a compressed message, which nobody asked for");
  return { type: "message", bytes: body.subarray(prefixBytes, prefixBytes + body.readUInt32BE(1)) };
}

/** A message that is wrongly escaped is shown as it came. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
