import assert from "node:assert/strict";
import { test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { type Logger, silentLogger } from "../ground/base/index.ts";

test("a machine that swaps and can't keep volumes in memory from it says so, and that pods are limited", async () => {
  await using whole = await WholeAgent.start({ swaps: ["/dev/swap"] });
  const events = (): readonly string[] =>
    whole.api.calls
      .filter(({ verb, path }) => verb === "create" && path.includes("/events"))
      .map(({ body }) => body as { type: string; reason: string; message: string })
      .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  await whole.until("both are told", () =>
    ["PossibleMemoryBackedVolumesOnDisk", "NodeAllocatableEnforced"].every((reason) =>
      events().some((event) => event.includes(reason)),
    ),
  );
  assert.deepEqual(
    events().filter((event) => /Memory|Allocatable/.test(event) && !event.includes("NodeHas")),
    [
      "Warning PossibleMemoryBackedVolumesOnDisk: The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.",
      "Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods",
    ],
  );
});

test("a directory of device plugins that can't be had is tried again and again, and said once", async () => {
  const said: string[] = [];
  const log: Logger = { ...silentLogger, error: (message) => void said.push(message), named: () => log };
  let tries = 0;
  const onHost = (what: string): void => {
    if (what !== "openDevicePlugins") return;
    tries++;
    throw new Error(tries < 20 ? "another agent has it" : "it is full");
  };
  await using whole = await WholeAgent.start({ log, onHost });
  await whole.until("it was tried often", () => tries > 25, 200_000);
  const lines = said.filter((message) => message.includes("Device plugins can't register"));
  assert.equal(lines.length, 2, "once for each reason");
});
