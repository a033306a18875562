import type { Clock } from "../../base/index.ts";

/**
 * The two questions asked of a runtime before an agent runs: does CRI answer, and does it know an image. Written on
 * bare gRPC, because commands may not import the agent's CRI client.
 */
export async function criAnswers(endpoint: string, clock: Clock): Promise<boolean> {
  return (await call(endpoint, "/runtime.v1.RuntimeService/Status", Buffer.alloc(0), clock)) !== undefined;
}

/** True when CRI lists the image; it learns of imported images a moment after the import. */
export async function criHasImage(endpoint: string, name: string, clock: Clock): Promise<boolean> {
  const spec = stringField(1, Buffer.from(name));
  const reply = await call(endpoint, "/runtime.v1.ImageService/ImageStatus", stringField(1, spec), clock);
  // Field 1 of the reply is the image, left out when it is unknown.
  return reply?.[0] === 0x0a;
}

/** A length-delimited protobuf field. */
function stringField(field: number, content: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = content.length; ; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length]), content]);
}

async function call(endpoint: string, method: string, request: Buffer, clock: Clock): Promise<Buffer | undefined> {
  const { Client, credentials } = await import("@grpc/grpc-js");
  const client = new Client(endpoint, credentials.createInsecure());
  const same = (bytes: Buffer): Buffer => bytes;
  try {
    return await new Promise((resolve) => {
      const deadline = { deadline: clock.now() + 5_000 };
      client.makeUnaryRequest(method, same, same, request, deadline, (error, reply) =>
        resolve(error ? undefined : reply),
      );
    });
  } finally {
    client.close();
  }
}
