import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { PodViewChange } from "../../ground/model/index.ts";
import { AgentAnswerError, LocalClient } from "./local-client.ts";

const forever = new AbortController().signal;
const where = { namespace: "a", pod: "b", container: "c" };

async function withAgent(
  listener: RequestListener,
  check: (client: LocalClient) => Promise<void>,
  silentMs?: number,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-local-"));
  const server = createServer(listener).listen(join(directory, "nodelet.sock"));
  try {
    await once(server, "listening");
    await check(new LocalClient(join(directory, "nodelet.sock"), silentMs));
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  }
}

test("pods: the items of the list, and none when the agent says null", async () => {
  let items: unknown = null;
  await withAgent(
    (_request, response) => response.end(JSON.stringify({ kind: "PodList", items })),
    async (client) => {
      assert.deepEqual(await client.pods(forever), []);
      items = [{ metadata: { name: "web" } }];
      assert.deepEqual(await client.pods(forever), items);
    },
  );
});

test("pods: an answer other than 200 is an error with its text", async () => {
  await withAgent(
    (_request, response) => response.writeHead(503).end("not yet\n"),
    async (client) => {
      const expected = { name: "AgentAnswerError", status: 503, message: "The agent answered /pods with 503: not yet" };
      await assert.rejects(client.pods(forever), expected);
      await assert.rejects(client.watchPods(forever).next(), AgentAnswerError);
    },
  );
});

test("watch: changes arrive as they are sent, even when a line comes in pieces, and the end of the agent ends it", async () => {
  await withAgent(
    (request, response) => {
      assert.equal(request.url, "/pods?watch=1");
      response.write('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"MODIF');
      setImmediate(() => response.end('IED","object":{"metadata":{"name":"a"}}}\n'));
    },
    async (client) => {
      const changes: PodViewChange[] = [];
      for await (const change of client.watchPods(forever)) changes.push(change);
      assert.deepEqual(
        changes.map(({ type, object }) => [type, object.metadata?.name]),
        [
          ["ADDED", "a"],
          ["MODIFIED", "a"],
        ],
      );
    },
  );
});

test("watch: aborting ends it", async () => {
  await withAgent(
    (_request, response) => {
      response.write('{"type":"ADDED","object":{}}\n');
    },
    async (client) => {
      const controller = new AbortController();
      await assert.rejects(
        async () => {
          for await (const _change of client.watchPods(controller.signal)) controller.abort();
        },
        { name: "AbortError" },
      );
    },
  );
});

test("a log whose agent ends in the middle says so", async () => {
  await withAgent(
    (_request, response) => {
      response.write("one\n");
      setImmediate(() => response.destroy());
    },
    async (client) => {
      const log = client.logs(where, new URLSearchParams(), forever);
      await assert.rejects(async () => {
        for await (const _ of log);
      }, /the connection to the agent was cut/);
    },
  );
});

for (const { asked, ask } of [
  { asked: "a question", ask: (client: LocalClient) => client.pods(forever) },
  { asked: "a change", ask: (client: LocalClient) => client.post("/rollout/keep", "", forever) },
  { asked: "a command", ask: (client: LocalClient) => client.exec(where, new URLSearchParams(), forever) },
]) {
  test(`an agent that says nothing to ${asked} is given up`, async () => {
    for (const listener of [() => {}, (_, response) => void response.write("half")] satisfies RequestListener[]) {
      await withAgent(
        listener,
        async (client) => {
          await assert.rejects(ask(client), /has not answered for 0\.05 s/);
        },
        50,
      );
    }
  });

  test(`an agent that ends before its answer to ${asked} is said to have ended`, async () => {
    await withAgent(
      ({ socket }) => void socket.destroy(),
      async (client) => {
        await assert.rejects(ask(client), { name: "AgentCutError" });
      },
    );
  });
}

test("health: the verdict and the report", async () => {
  let code = 200;
  await withAgent(
    (_request, response) => response.writeHead(code).end("[+]ping ok\n"),
    async (client) => {
      assert.deepEqual(await client.health(forever), { healthy: true, report: "[+]ping ok\n" });
      code = 500;
      assert.equal((await client.health(forever)).healthy, false);
    },
  );
});
