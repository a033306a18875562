import { randomInt } from "node:crypto";
import { CriError } from "../../../connections/cri/index.ts";
import { type InspectedContainer, isAbsent, isClash } from "../engine/index.ts";
import { typeLabel } from "../mapping/labels.ts";
import { distinctName, parseName } from "../mapping/names.ts";
import type { ShimContext } from "./context.ts";

/** What is made, as messages name it. */
export type Made = "sandbox" | "container";

/**
 * Makes a container under its name. Docker gives a name away once, so the name keeps one attempt from being made twice.
 * What is in the way is looked at: leftovers that are no attempt of ours go, and where Docker holds a name for nothing,
 * another one is taken.
 */
export async function createNamed(
  { engine, log }: Pick<ShimContext, "engine" | "log">,
  made: Made,
  name: string,
  body: object,
  signal: AbortSignal,
): Promise<string> {
  try {
    return await engine.createContainer(name, body, signal);
  } catch (error) {
    if (!isClash(error)) throw error;
    const holder = await holderOf(engine, name, signal);
    if (holder !== undefined && isOurs(holder)) throw reserved(made, name, holder.id);
    log.warn("a name is taken by what is no part of a pod", { name, holder: holder?.id });
    if (holder === undefined) return await engine.createContainer(distinctName(name, randomInt(2 ** 32)), body, signal);
    await engine.removeContainer(holder.id, signal, "only when stopped").catch((removal: unknown) => {
      if (!isAbsent(removal)) throw error;
    });
    return await engine.createContainer(name, body, signal);
  }
}

async function holderOf(
  engine: ShimContext["engine"],
  name: string,
  signal: AbortSignal,
): Promise<InspectedContainer | undefined> {
  try {
    return await engine.inspectContainer(name, signal);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** One that Docker could not remove all of ("dead") is none any more. */
function isOurs({ labels, state }: InspectedContainer): boolean {
  return labels[typeLabel] !== undefined && state.status !== "dead" && state.status !== "removing";
}

function reserved(made: Made, engineName: string, holder: string): CriError {
  const parts = parseName(engineName);
  const { container = "", pod = "", namespace = "", uid = "", attempt = 0 } = parts ?? {};
  const own = made === "sandbox" ? [pod, namespace, uid, attempt] : [container, pod, namespace, uid, attempt];
  const name = own.join("_");
  const operation = made === "sandbox" ? "runPodSandbox" : "createContainer";
  return new CriError(
    "Unknown",
    operation,
    `failed to reserve ${made} name "${name}": name "${name}" is reserved for "${holder}"`,
  );
}
