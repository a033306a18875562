// Images of pods as their users see it: pulled, refused, absent, in the way of nobody.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Container, Pod } from "../../src/ground/model/index.ts";
import { isReady } from "../support/agent.ts";
import { makeImage } from "../support/images.ts";
import { registryCredentials, startRegistry, type TestRegistry } from "../support/registry.ts";
import { statusOf, TestNode } from "../support/test-node.ts";

describe("images", { concurrency: 6 }, () => {
  let node: TestNode;
  let open: TestRegistry;
  let closed: TestRegistry;
  let unknown: TestRegistry;
  let silent: Server;
  let silentHost = "";
  before(async () => {
    [open, closed, unknown] = await Promise.all([
      startRegistry({ auth: "none" }),
      startRegistry({ auth: "basic" }),
      startRegistry({ auth: "basic" }),
    ]);
    silent = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = silent.address();
    if (address !== null && typeof address === "object") silentHost = `127.0.0.1:${address.port}`;
    node = await TestNode.start({}, async ({ rootDir }) => {
      const { username, password } = registryCredentials;
      const auth = Buffer.from(`${username}:${password}`).toString("base64");
      await writeFile(join(rootDir, "config.json"), JSON.stringify({ auths: { [closed.host]: { auth } } }));
    });
  });
  after(async () => {
    silent?.close();
    await Promise.all([node, open, closed, unknown].map((part) => part?.[Symbol.asyncDispose]()));
  });

  const server = (image: string, more: Partial<Container> = {}): Container => ({ ...node.server("main", more), image });
  const waitingFor =
    (reason: string) =>
    (pod: Pod): boolean =>
      statusOf(pod, "main").state?.waiting?.reason === reason;
  const pushed = async (registry: TestRegistry, name: string): Promise<string> =>
    registry.push(await makeImage({ name, labels: { name } }), name, "1");

  for (const { title, name, registry } of [
    { title: "from an open registry", name: "pull-open", registry: () => open },
    { title: "from one with a password that the node has", name: "pull-closed", registry: () => closed },
  ]) {
    test(`an image is pulled ${title}, once for all who want it`, async () => {
      const image = await pushed(registry(), name);
      await node.agent.apply(name, { containers: [server(image)] });
      const pod = await node.agent.until(name, "ready", isReady);
      assert.equal(statusOf(pod, "main").image, image);
      assert.match(statusOf(pod, "main").imageID, /@?sha256:[0-9a-f]{64}$/);
      await node.untilLogged(`${name}-test-node`, 'reason="Pulling"', `Pulling image \\"${image}\\"`);
      await node.untilLogged(`${name}-test-node`, 'reason="Pulled"', `Successfully pulled image \\"${image}\\" in `);
      await node.agent.apply(`${name}-too`, { containers: [server(image)] });
      await node.agent.until(`${name}-too`, "ready", isReady);
      await node.untilLogged(`${name}-too-test-node`, `Container image \\"${image}\\" already present on machine`);
    });
  }

  test("a registry that refuses: ErrImagePull, then ImagePullBackOff, the pod stays Pending and is tried again", async () => {
    const image = await pushed(unknown, "secret");
    await node.agent.apply("refused", { containers: [server(image), { ...node.server("other") }] });
    const failed = await node.agent.until("refused", "refused", waitingFor("ErrImagePull"));
    assert.match(
      statusOf(failed, "main").state?.waiting?.message ?? "",
      /failed to (authorize|resolve)|401|no basic auth/,
    );
    assert.equal(failed.status?.phase, "Pending");
    const waiting = await node.agent.until("refused", "waits", waitingFor("ImagePullBackOff"));
    const { state, restartCount } = statusOf(waiting, "main");
    assert.ok(state?.waiting?.message?.startsWith(`Back-off pulling image "${image}": ErrImagePull: `));
    assert.equal(restartCount, 0);
    const other = await node.agent.until("refused", "the other runs", (pod) => statusOf(pod, "other").ready);
    assert.equal(other.status?.phase, "Pending");
    await node.untilLogged(
      "refused-test-node",
      'type="Normal"',
      'reason="BackOff"',
      `Back-off pulling image \\"${image}\\"`,
    );
    await node.agent.until("refused", "tried again", waitingFor("ErrImagePull"), 30_000);
  });

  test("an image that is not there, and comes later", async () => {
    const image = `${open.host}/late:1`;
    await node.agent.apply("late", { containers: [server(image)] });
    const failed = await node.agent.until("late", "not found", waitingFor("ErrImagePull"));
    assert.match(statusOf(failed, "main").state?.waiting?.message ?? "", /not found/);
    await pushed(open, "late");
    await node.agent.until("late", "ready", isReady, 40_000);
  });

  test("policy Never: what is present runs, what is absent is not pulled", async () => {
    const image = await pushed(open, "never");
    const never = { imagePullPolicy: "Never" };
    await node.agent.apply("never-absent", { containers: [server(image, never)] });
    await node.agent.apply("never-present", { containers: [node.server("main", never)] });
    await node.agent.until("never-present", "ready", isReady);
    const pod = await node.agent.until("never-absent", "refused", waitingFor("ErrImageNeverPull"));
    assert.equal(
      statusOf(pod, "main").state?.waiting?.message,
      `Container image "${image}" is not present with pull policy of Never`,
    );
    assert.ok(!(await open.log()).includes('/v2/never/manifests/1 HTTP/1.1" 200'), "nobody asked for it");
  });

  test("policy Always asks the registry each time", async () => {
    const image = await pushed(open, "always");
    await node.agent.apply("always", {
      containers: [{ ...node.shell("main", "exit 0"), image, imagePullPolicy: "Always" }],
    });
    await node.agent.until("always", "restarted", (pod) => statusOf(pod, "main").restartCount === 1);
    const pulls = await node.logged("always-test-node", 'reason="Pulled"', "Successfully pulled");
    assert.ok(pulls.length >= 2, `${pulls.length} pulls`);
  });

  test("a name that is none", async () => {
    await node.agent.apply("misnamed", { containers: [server("Not/An/Image::")] });
    const pod = await node.agent.until("misnamed", "refused", waitingFor("InvalidImageName"));
    assert.match(
      statusOf(pod, "main").state?.waiting?.message ?? "",
      /^Failed to apply default image tag "Not\/An\/Image::": /,
    );
  });

  test("a pull that hangs keeps nobody from starting with images that are there", async () => {
    await node.agent.apply("hangs", { containers: [server(`${silentHost}/never/answers:1`)] });
    await node.untilLogged("hangs-test-node", 'reason="Pulling"');
    await node.agent.apply("present", { containers: [node.server("main")] });
    await node.agent.until("present", "ready", isReady, 60_000);
    const pod = await node.agent.pod("hangs");
    assert.equal(pod?.status?.phase, "Pending");
    await node.agent.remove("hangs");
    await node.agent.untilGone("hangs", 45_000);
  });
});
