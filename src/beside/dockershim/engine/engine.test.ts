import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";
import { never, systemClock } from "../../../ground/base/index.ts";
import { ApiTooOldError, Engine } from "./engine.ts";
import { EngineError, EngineUnavailable } from "./errors.ts";

/** A Docker that answers as the test says, once it was asked which API it speaks. */
async function docker(
  answer: RequestListener,
  work: (socketPath: string) => Promise<void>,
  api: () => string = () => "1.41",
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "fake-docker-"));
  const socketPath = join(directory, "d.sock");
  const server = createServer((request, response) => {
    if (request.url === "/_ping") return void response.writeHead(200, { "Api-Version": api() }).end("OK");
    answer(request, response);
  });
  server.listen(socketPath);
  await once(server, "listening");
  try {
    await work(socketPath);
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  }
}

const settings = (socketPath: string) => ({ socketPath, requestTimeoutMs: 5_000 });

test("the newest API that both know is spoken; one that is too old is refused for good", async () => {
  const paths: string[] = [];
  const answer: RequestListener = ({ url }, response) => {
    paths.push(url ?? "");
    response.end('{"DockerRootDir":"/var/lib/docker"}');
  };
  for (const api of ["1.41", "1.99"]) {
    await docker(
      answer,
      async (socketPath) => void (await new Engine(settings(socketPath), systemClock).info(never)),
      () => api,
    );
  }
  assert.deepEqual(paths, ["/v1.41/info", "/v1.44/info"]);
  for (const api of ["1.40", "2.0", "rubbish"]) {
    await docker(
      answer,
      (path) => assert.rejects(new Engine(settings(path), systemClock).info(never), ApiTooOldError),
      () => api,
    );
  }
});

test("a refusal has docker's status and words, however it puts them", async () => {
  const bodies = ['{"message":"No such container: x"}', "plain words", ""];
  const answer: RequestListener = (_, response) => response.writeHead(404).end(bodies.shift());
  await docker(answer, async (socketPath) => {
    const engine = new Engine(settings(socketPath), systemClock);
    for (const message of ["No such container: x", "plain words", "docker answered with status 404"]) {
      await assert.rejects(engine.inspectContainer("x", never), new EngineError(404, message));
    }
  });
});

test("a refusal that quotes more than anybody reads keeps its status", async () => {
  const answer: RequestListener = (_, response) =>
    response.writeHead(404).end(JSON.stringify({ message: `no such program: ${"x".repeat(1_000_000)}` }));
  await docker(answer, async (socketPath) => {
    const engine = new Engine(settings(socketPath), systemClock);
    const refused = { name: "EngineError", status: 404, message: /no such program: x{100}/ };
    await assert.rejects(engine.startContainer("x", never), refused);
    await assert.rejects(engine.waitContainer("x", never), refused);
    engine.close();
  });
});

test("a refusal that never ends is given up, also where an answer may take any time", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const answer: RequestListener = (_, response) => {
    asked++;
    response.writeHead(500).write("{");
  };
  await docker(answer, async (socketPath) => {
    const engine = new Engine(settings(socketPath), clock);
    const waiting = assert.rejects(engine.waitContainer("x", never), EngineUnavailable);
    await until("docker is asked", () => asked === 1);
    await until("its head has come", () => clock.pendingTimers === 1);
    await clock.advance(30_000);
    await waiting;
    engine.close();
  });
});

test("containers that docker keeps waiting keep nobody else waiting, however many they are", async () => {
  let hung = 0;
  const answer: RequestListener = ({ url = "" }, response) => {
    if (url.includes("/hung")) hung++;
    else response.end(url.includes("/containers/json") ? "[]" : '{"Id":"good","Version":"20.10"}');
  };
  await docker(answer, async (socketPath) => {
    const engine = new Engine(settings(socketPath), systemClock);
    const leaving = new AbortController();
    const starts = Array.from({ length: 300 }, (_, index) => engine.startContainer(`hung${index}`, leaving.signal));
    const left = Promise.allSettled(starts);
    await until("all of them hang", () => hung === 300);
    await engine.version(never);
    assert.deepEqual(await engine.listContainers([], never), []);
    await engine.inspectContainer("good", never);
    leaving.abort();
    await left;
    engine.close();
  });
});

test("rubbish instead of JSON fails the call", async () => {
  await docker(
    (_, response) => response.end("<html>"),
    async (socketPath) => {
      await assert.rejects(new Engine(settings(socketPath), systemClock).info(never), EngineUnavailable);
    },
  );
});

test("an answer about nothing is not taken for one that there is nothing", async () => {
  const bodies = ["{}", "7", '"x"', "null"];
  await docker(
    (_, response) => response.end(bodies[0]),
    async (socketPath) => {
      const engine = new Engine(settings(socketPath), systemClock);
      for (; bodies.length > 1; bodies.shift()) {
        await assert.rejects(engine.listContainers([], never), EngineUnavailable);
        await assert.rejects(engine.listImages(undefined, never), EngineUnavailable);
        await assert.rejects(engine.inspectContainer("x", never), EngineUnavailable);
        await assert.rejects(engine.inspectImage("x", never), EngineUnavailable);
        await assert.rejects(engine.version(never), EngineUnavailable);
        await assert.rejects(engine.info(never), EngineUnavailable);
      }
      assert.deepEqual(await engine.listContainers([], never), [], "Docker's way to write an empty list");
    },
  );
});

test("a docker that was replaced without ever being away is asked which API it speaks", async () => {
  let api = "1.41";
  const paths: string[] = [];
  const answer: RequestListener = ({ url = "" }, response) => {
    paths.push(url.replace(/\?.*/, ""));
    response.end('{"DockerRootDir":"/var/lib/docker"}');
  };
  await docker(
    answer,
    async (socketPath) => {
      const engine = new Engine(settings(socketPath), systemClock);
      await engine.info(never);
      for await (const _ of engine.events(never, () => {}));
      api = "1.44";
      await engine.info(never);
    },
    () => api,
  );
  assert.deepEqual(paths, ["/v1.41/info", "/v1.41/events", "/v1.44/info"]);
});

test("an answer beyond all measure is given up", async () => {
  const answer: RequestListener = (_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(1024 * 1024, 32)));
    };
    response.on("drain", more);
    more();
  };
  await docker(answer, async (socketPath) => {
    await assert.rejects(new Engine(settings(socketPath), systemClock).info(never), /more than \d+ bytes/);
  });
});

test("a docker that hangs is given up after its time, and one that breaks off is not waited for", async () => {
  let asked = 0;
  await docker(
    () => void asked++,
    async (socketPath) => {
      const clock = new FakeClock();
      const call = assert.rejects(new Engine(settings(socketPath), clock).info(never), /context deadline exceeded/);
      await until("docker was asked", () => asked === 1);
      await clock.advance(5_000);
      await call;
    },
  );
  await docker(
    (_, response) => void response.writeHead(200, { "Content-Length": 100 }).write("{", () => response.destroy()),
    async (socketPath) => {
      await assert.rejects(new Engine(settings(socketPath), systemClock).info(never), EngineUnavailable);
    },
  );
});

test("names never lead elsewhere in the API", async () => {
  const paths: string[] = [];
  const answer: RequestListener = ({ url }, response) => {
    paths.push(url ?? "");
    response.end('{"Id":"x"}');
  };
  await docker(answer, async (socketPath) => {
    const engine = new Engine(settings(socketPath), systemClock);
    await engine.inspectContainer("../images/x?y", never);
    await engine.inspectImage("host:5000/a/b:1", never);
    await assert.rejects(engine.inspectImage("../containers/x", never), /invalid reference format/);
  });
  assert.deepEqual(paths, ["/v1.41/containers/..%2Fimages%2Fx%3Fy/json", "/v1.41/images/host%3A5000/a/b%3A1/json"]);
});

test("events come one by one, with times too large for a number; what is no event is passed over", async () => {
  const lines = [
    '{"Type":"container","Action":"die","Actor":{"ID":"a","Attributes":{"name":"x","exitCode":"3"}},"timeNano":1700000000123456789}',
    "rubbish",
    '{"Type":"volume","Action":"create","Actor":{"ID":"v"}}',
    '{"Type":"image","Action":"pull","Actor":{"ID":"i"}}',
  ];
  await docker(
    (_, response) => response.end(lines.join("\n")),
    async (socketPath) => {
      const seen: unknown[] = [];
      let isOpen = false;
      for await (const event of new Engine(settings(socketPath), systemClock).events(never, () => (isOpen = true))) {
        seen.push([event.type, event.action, event.id, event.timeNanos]);
      }
      assert.ok(isOpen);
      assert.deepEqual(seen, [
        ["container", "die", "a", 1700000000123456789n],
        ["image", "pull", "i", 0n],
      ]);
    },
  );
});
