// Whatever is handed in as a manifest is answered, with bounded work, and the agent goes on.
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { maxManifestBytes } from "../ground/model/index.ts";

let whole: WholeAgent;
before(async () => {
  whole = await WholeAgent.start();
  await whole.until("the runtime has answered", () => whole.agent.parts.sight.arePodsKnown());
});
after(() => whole[Symbol.asyncDispose]());

const times = <Item>(count: number, make: (index: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

const pod = (spec: unknown, metadata: unknown = { name: "p" }): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec });
const container = (index: number, more: object = {}) => ({ name: `c${index}`, image: `image-${index}:1`, ...more });
const cpu = (amount: string) => ({ resources: { requests: { cpu: amount }, limits: { cpu: amount } } });
const bomb = times(30, (index) => `k${index}: &a${index} [${times(9, () => `*a${index - 1}`).join(",")}]`).slice(1);

for (const { name, manifest, outcome } of [
  { name: "nothing", manifest: "", outcome: ["invalid"] },
  { name: "a byte too much", manifest: Buffer.alloc(maxManifestBytes + 1, 0x20), outcome: ["invalid"] },
  { name: "no text", manifest: Buffer.from([0xff, 0xfe, 0, 0x80]), outcome: ["invalid"] },
  { name: "only zeros", manifest: Buffer.alloc(10_000), outcome: ["invalid"] },
  { name: "fifty thousand lists in each other", manifest: "[".repeat(50_000), outcome: ["invalid"] },
  {
    name: "a few thousand maps in each other",
    manifest: `${'{"a":'.repeat(3_000)}1${"}".repeat(3_000)}`,
    outcome: ["invalid"],
  },
  { name: "aliases of aliases", manifest: `k0: &a0 [x]\n${bomb.join("\n")}\n`, outcome: ["invalid"] },
  { name: "something else", manifest: '{"apiVersion":"v1","kind":"Node"}', outcome: ["invalid"] },
  { name: "a list in place of a spec", manifest: pod([]), outcome: ["invalid"] },
  { name: "numbers in place of containers", manifest: pod({ containers: [1, null, "x", {}] }), outcome: ["invalid"] },
  {
    name: "the names of an object's own parts",
    manifest:
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"__proto__":"x","constructor":"y"}},"spec":{"containers":[{"name":"c","image":"i"}],"__proto__":{}}}',
    outcome: ["admitted", "invalid"],
  },
  {
    name: "two pods",
    manifest: `${pod({ containers: [container(0)] })}\n---\n${pod({ containers: [container(1)] })}`,
    outcome: ["admitted", "invalid"],
  },
  {
    name: "amounts without end",
    manifest: pod({ containers: [container(0, cpu("9".repeat(5_000)))] }),
    outcome: ["refused", "invalid"],
  },
  {
    name: "a uid that leads elsewhere",
    manifest: pod({ containers: [container(0)] }, { name: "p", uid: "../../etc" }),
    outcome: ["invalid"],
  },
  { name: "two thousand containers", manifest: pod({ containers: times(2_000, container) }), outcome: ["admitted"] },
  {
    name: "three thousand volumes",
    manifest: pod({
      volumes: times(3_000, (index) => ({ name: `v${index}`, emptyDir: {} })),
      containers: [
        container(0, { volumeMounts: times(3_000, (index) => ({ name: `v${index}`, mountPath: `/v${index}` })) }),
      ],
    }),
    outcome: ["admitted"],
  },
  {
    name: "five thousand problems",
    manifest: pod({ containers: times(5_000, () => ({ name: "A B" })) }),
    outcome: ["invalid"],
  },
  {
    name: "ten thousand host ports",
    manifest: pod({
      containers: [container(0, { ports: times(10_000, (index) => ({ containerPort: 1, hostPort: index + 1 })) })],
    }),
    outcome: ["admitted"],
  },
] as const satisfies readonly { name: string; manifest: string | Uint8Array; outcome: readonly string[] }[]) {
  test(name, async (t) => {
    const began = performance.now();
    const before = process.cpuUsage();
    const plan = await whole.planOf("odd.yaml", manifest);
    const { user, system } = process.cpuUsage(before);
    const [tookMs, workedMs] = [performance.now() - began, (user + system) / 1000];
    t.diagnostic(`${Math.round(tookMs)} ms, of which this process worked ${Math.round(workedMs)}`);
    assert.ok(
      (outcome as readonly string[]).includes(plan.outcome),
      `${plan.outcome} ${JSON.stringify(plan).slice(0, 500)}`,
    );
    // Time on the wall depends on who else is at work; a manifest that takes a minute to read is given up.
    assert.ok(workedMs < 5_000, `${workedMs} ms of work`);
    assert.ok(tookMs < 90_000, `${tookMs} ms`);
    const answer = JSON.stringify(plan);
    assert.ok(answer.length < 500_000, `${answer.length} characters`);
    assert.equal(whole.outcome, undefined);
  });
}
