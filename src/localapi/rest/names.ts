import { randomInt } from "node:crypto";

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
