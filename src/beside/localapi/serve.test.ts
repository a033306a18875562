import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { defaultLogSettings, LogWriter, systemClock } from "../../ground/base/index.ts";
import type { WriteBytes } from "../../ground/base/log-stream.ts";
import { runApiServer, type ServeOptions } from "./serve.ts";

/** The command as a process would run it; says what it wrote. */
function processFor() {
  let log = "";
  const write: WriteBytes = (bytes, done) => {
    log += Buffer.from(bytes).toString();
    done(null, bytes.length);
  };
  const logWriter = new LogWriter({ clock: systemClock, pid: 1, stdout: write, stderr: write }, defaultLogSettings);
  const told = async (): Promise<string> => {
    await logWriter.flush();
    return log;
  };
  return { process: { clock: systemClock, logWriter }, told };
}

function optionsFor(dir: string, port: number): ServeOptions {
  const listen = { host: "127.0.0.1", port };
  return { dir, listen, advertise: undefined, nodes: [], kubeletHost: undefined, binder: "on" };
}

describe("nodelet api-server", () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "api-server-"));
  });
  after(() => rm(directory, { recursive: true }));

  /** Runs the server until it has written the administrator's kubeconfig, does the work, and stops it. */
  async function whileServing(dir: string, port: number, work: (url: string) => Promise<void>): Promise<void> {
    const { process, told } = processFor();
    const stop = new AbortController();
    const options = { ...optionsFor(dir, port), nodes: ["n1"], kubeletHost: "127.0.0.1" };
    const ended = runApiServer(options, process, stop.signal);
    let url: string | undefined;
    while (url === undefined) {
      url = /url="(.*?)"/.exec(await told())?.[1];
      if (url === undefined) await systemClock.sleep(10, AbortSignal.timeout(60_000));
    }
    try {
      await work(url);
    } finally {
      stop.abort();
    }
    assert.equal(await ended, 0, await told());
  }

  test("it writes credentials, answers, and keeps them over a restart on the same port", async () => {
    const dir = join(directory, "kept");
    const read = async (name: string) => await readFile(join(dir, name), "utf8");
    const files = ["admin.kubeconfig", "node-n1.kubeconfig", "ca.crt"];
    let port = 0;
    let first: string[] = [];
    await whileServing(dir, 0, async (url) => {
      port = Number(new URL(url).port);
      first = await Promise.all(files.map(read));
      assert.equal(JSON.parse(first[0] ?? "").clusters[0].cluster.server, url);
      assert.equal((await stat(join(dir, "admin.kubeconfig"))).mode & 0o777, 0o600);
      assert.equal((await stat(join(dir, "node-n1.kubeconfig"))).mode & 0o777, 0o600);
      assert.equal(await statusOf(`${url}/readyz`, first[2] ?? ""), 200);
      assert.equal(await statusOf(`${url}/api/v1/secrets`, first[2] ?? ""), 403);
    });
    await whileServing(dir, port, async () => assert.deepEqual(await Promise.all(files.map(read)), first));
    await whileServing(dir, 0, async (url) => {
      const now = JSON.parse(await read("admin.kubeconfig"));
      assert.equal(now.clusters[0].cluster.server, url);
    });
  });

  test("keys that were never written whole are made anew; keys that are spoilt are not", async () => {
    const dir = join(directory, "torn");
    await mkdir(dir);
    await writeFile(join(dir, "identity.json"), "");
    await whileServing(dir, 0, async () => {});
    assert.ok((await readFile(join(dir, "identity.json"), "utf8")).length > 100);
    await writeFile(join(dir, "identity.json"), '{"certPem":"');
    const { process, told } = processFor();
    assert.equal(await runApiServer(optionsFor(dir, 0), process, new AbortController().signal), 1);
    assert.match(await told(), /keys in .*identity\.json can't be read: .*from a copy/);
  });

  test("a directory that cannot be used ends it with 1 and the reason", async () => {
    const file = join(directory, "kept", "ca.crt");
    await chmod(file, 0o600);
    const { process, told } = processFor();
    assert.equal(await runApiServer(optionsFor(file, 0), process, new AbortController().signal), 1);
    assert.match(await told(), /command failed.*ENOTDIR/);
  });
});

function statusOf(url: string, ca: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { ca, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once("error", reject)
      .end();
  });
}
