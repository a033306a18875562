import { randomInt } from "node:crypto";
import { type ObjectMeta, type Problem, validateMetadata } from "../../../ground/model/index.ts";
import type { Kind } from "../kinds/index.ts";

// No vowels, so that no words appear; no digits that look like letters.
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;
const longestPrefix = 63 - suffixLength;

export function randomSuffix(): string {
  return Array.from({ length: suffixLength }, () => alphabet[randomInt(alphabet.length)]).join("");
}

export function generatedName(prefix: string): string {
  return prefix.slice(0, longestPrefix) + randomSuffix();
}

export function metadataProblems(kind: Kind, metadata: ObjectMeta): readonly Problem[] {
  const problems = validateMetadata(metadata, kind.namespaced ? "namespaced" : "cluster");
  const name = metadata.name ?? "";
  const fitsIntoPath = name !== "" && name !== "." && name !== ".." && !/[/%]/.test(name);
  const isFree = kind.names === "path" && fitsIntoPath;
  return isFree ? problems.filter(({ field }) => field !== "metadata.name") : problems;
}
