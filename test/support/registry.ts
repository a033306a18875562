import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Blob, buildImage, type OciImage } from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { freePort } from "./free-port.ts";
import { soon } from "./until.ts";

/** What a registry with authentication asks for. */
export const registryCredentials = { username: "puller", password: "open-sesame" } as const;
// The line that `htpasswd -Bbn puller open-sesame` prints.
const htpasswdLine = "puller:$2y$05$dL.amflqvdYLmTPcr47o..N9YiCmiq1kvDdMFUiMt5x0bqU8Uk06y\n";

export interface TestRegistry extends AsyncDisposable {
  /** "127.0.0.1:PORT"; containerd speaks plain HTTP to loopback addresses. */
  readonly host: string;
  /** Stores the image and returns its reference, such as "127.0.0.1:40001/team/app:1". */
  push(image: OciImage, repository: string, tag: string): Promise<string>;
  /** The registry's log so far, one request per line. */
  log(): Promise<string>;
}

/** Starts a registry on loopback; it ends and its files go when the result is left or this process dies. */
export async function startRegistry(options: { readonly auth: "none" | "basic" }): Promise<TestRegistry> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-registry-"));
  const host = `127.0.0.1:${await freePort()}`;
  const configFile = join(directory, "config.yml");
  const passwordFile = join(directory, "htpasswd");
  const logFile = join(directory, "log");
  await writeFile(passwordFile, htpasswdLine);
  await writeFile(
    configFile,
    JSON.stringify({
      version: "0.1",
      storage: { filesystem: { rootdirectory: join(directory, "storage") } },
      http: { addr: host },
      ...(options.auth === "basic" && { auth: { htpasswd: { realm: "nodelet", path: passwordFile } } }),
    }),
  );
  // The shell ends the registry when its input ends, which also happens when we are killed.
  const script = 'docker-registry serve "$1" >"$2" 2>&1 & read -r word; kill -9 $!; rm -rf "$0"';
  const child = spawn("sh", ["-c", script, directory, configFile, logFile], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const exited = once(child, "exit");
  child.unref();
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();

  const registry: TestRegistry = {
    host,
    async push(image, repository, tag) {
      for (const blob of [image.layer, image.config]) await pushBlob(host, repository, blob);
      const { mediaType, content } = image.manifest;
      const url = `http://${host}/v2/${repository}/manifests/${tag}`;
      await request(url, { method: "PUT", body: content, headers: { "content-type": mediaType } });
      return `${host}/${repository}:${tag}`;
    },
    log: () => readFile(logFile, "utf8"),
    async [Symbol.asyncDispose]() {
      child.ref();
      child.stdin.end();
      await exited;
    },
  };
  try {
    await untilAnswering(host, registry);
  } catch (error) {
    await registry[Symbol.asyncDispose]();
    throw error;
  }
  return registry;
}

/** A small image to push; equal names give equal images. */
export function tinyImage(name: string, labels: Readonly<Record<string, string>> = {}): OciImage {
  return buildImage({ name, labels, entries: [{ type: "file", path: "name", content: Buffer.from(name) }] });
}

async function pushBlob(host: string, repository: string, { digest, content }: Blob): Promise<void> {
  const start = await request(`http://${host}/v2/${repository}/blobs/uploads/`, { method: "POST" });
  const location = new URL(start.headers.get("location") ?? "", `http://${host}`);
  location.searchParams.set("digest", digest);
  await request(location.href, {
    method: "PUT",
    body: content,
    headers: { "content-type": "application/octet-stream" },
  });
}

async function request(
  url: string,
  init: { readonly method: string; readonly body?: Buffer; readonly headers?: Readonly<Record<string, string>> },
): Promise<Response> {
  const { username, password } = registryCredentials;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const { body, ...rest } = init;
  const response = await fetch(url, {
    ...rest,
    ...(body && { body: new Uint8Array(body) }),
    headers: { ...init.headers, authorization },
  });
  if (!response.ok) throw new Error(`${init.method} ${url} answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
  return response;
}

async function untilAnswering(host: string, registry: TestRegistry): Promise<void> {
  const giveUp = soon();
  for (;;) {
    try {
      await request(`http://${host}/v2/`, { method: "GET" });
      return;
    } catch (error) {
      if (giveUp.aborted) {
        throw new Error(`docker-registry does not answer on ${host}: ${await registry.log()}`, { cause: error });
      }
    }
    await systemClock.sleep(20, giveUp);
  }
}
