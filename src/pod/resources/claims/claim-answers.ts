import type { ClaimAnswer, ClaimRef } from "../../../connections/plugins/index.ts";
import { cutText } from "../../../ground/base/index.ts";

export type ClaimMethod = "NodePrepareResources" | "NodeUnprepareResources";

/** What is kept of a claim is written again with every change; no driver needs so much for one. */
const mostDevices = 256;
const mostBytes = 64 * 1024;
const longestError = 1024;

/**
 * What a driver did of what it was asked for: the claims that are done, and why the others are not, in the words that
 * users know. An answer about claims that nobody asked for is none.
 */
export function readAnswers(
  method: ClaimMethod,
  asked: readonly ClaimRef[],
  answers: ReadonlyMap<string, ClaimAnswer>,
): { readonly done: readonly ClaimRef[]; readonly problem: string | undefined } {
  const uids = new Set(asked.map(({ uid }) => uid));
  const unknown = [...answers.keys()].find((uid) => !uids.has(uid));
  if (unknown !== undefined) {
    return { done: [], problem: `${method} returned result for unknown claim UID ${cutText(unknown, longestError)}` };
  }
  const problems: string[] = [];
  const done = asked.filter((claim) => {
    const answer = answers.get(claim.uid);
    if (answer === undefined) return false;
    const error = answer.error === "" ? excess(answer) : cutText(answer.error, longestError);
    if (error !== undefined) problems.push(`${method} failed for ResourceClaim ${claim.name}: ${error}`);
    return error === undefined;
  });
  const skipped = asked.length - answers.size;
  if (skipped > 0) problems.push(`${method} skipped ${skipped} ResourceClaims`);
  return { done, problem: problems[0] };
}

function excess({ devices }: ClaimAnswer): string | undefined {
  if (devices.length > mostDevices)
    return `the driver names ${devices.length} devices, at most ${mostDevices} are taken`;
  const texts = devices.flatMap(({ pool, device, requests, cdiIds }) => [pool, device, ...requests, ...cdiIds]);
  const bytes = texts.reduce((sum, text) => sum + text.length + 8, 0);
  return bytes > mostBytes ? `the driver's answer has ${bytes} bytes, at most ${mostBytes} are taken` : undefined;
}
