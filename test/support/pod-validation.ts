import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Container,
  defaultPod,
  describeProblem,
  type ObjectMeta,
  type PodSpec,
  validatePod,
} from "../../src/ground/model/index.ts";

/** One way to spoil a good pod, and everything that must then be said about it, in order. */
export interface SpoiltPod {
  readonly name: string;
  readonly metadata?: ObjectMeta;
  readonly pod?: Partial<PodSpec>;
  /** Fields of the first container. */
  readonly container?: Partial<Container>;
  /** Further containers. */
  readonly more?: readonly Container[];
  readonly wanted: readonly (string | RegExp)[];
  /** Stands for `@` at the beginning of what is wanted. */
  readonly at?: string;
}

export function checksPods(topic: string, table: readonly SpoiltPod[]): void {
  for (const { name, metadata, pod, container, more = [], wanted, at = "" } of table) {
    test(`${topic}: ${name}`, () => {
      const problems = validatePod(
        defaultPod({
          metadata: { name: "p", namespace: "default", ...metadata },
          spec: { containers: [{ name: "c", image: "i:1", ...container }, ...more], ...pod },
        }),
      ).map(describeProblem);
      const expected = wanted.map((line, index) => {
        if (typeof line === "string") return line.replace(/^@/, at);
        const found = problems[index] ?? "";
        return line.test(found) ? found : String(line);
      });
      assert.deepEqual(problems, expected);
    });
  }
}

export const labelRule =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
export const subdomainRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
export const qualifiedRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
