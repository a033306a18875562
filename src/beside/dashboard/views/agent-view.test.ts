import assert from "node:assert/strict";
import { test } from "node:test";
import { ShownNode } from "../../../../test/support/dashboard.ts";
import { AgentLook } from "./agent-view.ts";

test("requests a minute are those of the last minute, however often somebody looks", async () => {
  const node = new ShownNode();
  const { clock } = node;
  let requests = 0;
  const metrics = async (): Promise<string> =>
    `rest_client_request_duration_seconds_bucket{verb="PUT",le="+Inf"} ${requests}\n`;
  const look = new AgentLook({ clock, process: { ...node.ports().process, metrics } });
  const perMinute = async (): Promise<number | null> => {
    const view = look.view();
    await clock.advance(10);
    return (await view).apiRequestsPerMinute;
  };
  assert.equal(await perMinute(), null);
  const seen: (number | null)[] = [];
  for (let second = 2; second <= 120; second += 2) {
    await clock.advance(1_990);
    if (second % 10 === 0) requests++;
    seen.push(await perMinute());
  }
  for (const figure of seen.slice(30)) assert.ok(figure !== null && figure > 5 && figure < 7, `${figure}`);
});
