import type { Clock } from "../../../ground/base/index.ts";

/**
 * The few things asked of a runtime without an agent: does CRI answer, does it know an image, and which sandboxes to
 * remove. Written on bare gRPC, because commands may not import the agent's CRI client.
 */
export async function criStatus(endpoint: string, clock: Clock): Promise<CriStatus> {
  try {
    await call(endpoint, "RuntimeService/Status", Buffer.alloc(0), clock);
    return { answers: true };
  } catch (error) {
    return { answers: false, error };
  }
}

export type CriStatus = { readonly answers: true } | { readonly answers: false; readonly error: unknown };

/** True when CRI lists the image; it learns of imported images a moment after the import. */
export async function criHasImage(endpoint: string, name: string, clock: Clock): Promise<boolean> {
  const request = field(1, field(1, Buffer.from(name)));
  // Field 1 of the reply is the image, left out when it is unknown.
  const reply = await call(endpoint, "ImageService/ImageStatus", request, clock);
  return readFields(reply).has(1);
}

export interface CriSandbox {
  readonly id: string;
  readonly podUid: string;
}

export async function criSandboxes(endpoint: string, clock: Clock): Promise<readonly CriSandbox[]> {
  const reply = await call(endpoint, "RuntimeService/ListPodSandbox", Buffer.alloc(0), clock);
  return (readFields(reply).get(1) ?? []).map((item) => {
    const sandbox = readFields(item);
    const metadata = readFields(sandbox.get(2)?.[0] ?? Buffer.alloc(0));
    return { id: sandbox.get(1)?.[0]?.toString() ?? "", podUid: metadata.get(2)?.[0]?.toString() ?? "" };
  });
}

/** Ends and removes a sandbox with all its containers. */
export async function criRemoveSandbox(endpoint: string, id: string, clock: Clock): Promise<void> {
  const request = field(1, Buffer.from(id));
  await call(endpoint, "RuntimeService/StopPodSandbox", request, clock);
  await call(endpoint, "RuntimeService/RemovePodSandbox", request, clock);
}

/** A length-delimited protobuf field. */
function field(number: number, content: Buffer): Buffer {
  const length: number[] = [];
  let rest = content.length;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, rest]), content]);
}

/** The length-delimited fields of a protobuf message by number; numbers and other kinds are passed over. */
export function readFields(message: Buffer): ReadonlyMap<number, readonly Buffer[]> {
  const fields = new Map<number, Buffer[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const kind = key % 8;
    if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else {
      const length = varint();
      const known = fields.get(Math.floor(key / 8)) ?? [];
      fields.set(Math.floor(key / 8), [...known, message.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

async function call(endpoint: string, method: string, request: Buffer, clock: Clock): Promise<Buffer> {
  // Bundled, a lazily imported CommonJS package has only a default export; run by tsx, this one has none.
  const imported = await import("@grpc/grpc-js");
  const grpc = imported.default ?? imported;
  const client = new grpc.Client(endpoint, grpc.credentials.createInsecure());
  const same = (bytes: Buffer): Buffer => bytes;
  const limit = { deadline: clock.now() + 60_000 };
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(`/runtime.v1.${method}`, same, same, request, limit, (error, reply) => {
        if (error || reply === undefined)
          reject(new Error(`${method} at ${endpoint} failed: ${error?.details}`, { cause: error }));
        else resolve(reply);
      });
    });
  } finally {
    client.close();
  }
}
