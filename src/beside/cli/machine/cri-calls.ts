import type { CriClient } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";

const callMs = 60_000;

/** Asks a runtime without an agent. The client is loaded by the commands that need it, and by no other. */
async function asking<Result>(
  endpoint: string,
  clock: Clock,
  ask: (client: CriClient) => Promise<Result>,
): Promise<Result> {
  const cri = await import("../../../connections/cri/index.ts");
  const client = new cri.CriClient({ runtimeEndpoint: endpoint, requestTimeoutMs: callMs }, { clock });
  try {
    return await ask(client);
  } catch (error) {
    if (!(error instanceof cri.CriError)) throw error;
    throw new Error(`${error.operation} at ${endpoint} failed: ${error.message}`, { cause: error });
  } finally {
    client.close();
  }
}

export type CriStatus = { readonly answers: true } | { readonly answers: false; readonly error: unknown };

export async function criStatus(endpoint: string, clock: Clock): Promise<CriStatus> {
  try {
    await asking(endpoint, clock, ({ runtime }) => runtime.status({ verbose: false }));
    return { answers: true };
  } catch (error) {
    return { answers: false, error };
  }
}

/** True when CRI lists the image; it learns of imported images a moment after the import. */
export async function criHasImage(endpoint: string, name: string, clock: Clock): Promise<boolean> {
  const image = { image: name, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
  const reply = await asking(endpoint, clock, ({ images }) => images.imageStatus({ image, verbose: false }));
  return reply.image !== undefined;
}

export interface CriSandbox {
  readonly id: string;
  readonly podUid: string;
}

export async function criSandboxes(endpoint: string, clock: Clock): Promise<readonly CriSandbox[]> {
  const { items } = await asking(endpoint, clock, ({ runtime }) => runtime.listPodSandbox({ filter: undefined }));
  return items.map(({ id, metadata }) => ({ id, podUid: metadata?.uid ?? "" }));
}

/** Ends and removes a sandbox with all its containers. */
export async function criRemoveSandbox(endpoint: string, podSandboxId: string, clock: Clock): Promise<void> {
  await asking(endpoint, clock, async ({ runtime }) => {
    await runtime.stopPodSandbox({ podSandboxId });
    await runtime.removePodSandbox({ podSandboxId });
  });
}
