import assert from "node:assert/strict";
import { test } from "node:test";
import { fails, type Pods } from "./pods.ts";

export function execContract(pods: Pods): void {
  test("a command in a container gives its output apart and its exit code", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, ["sleep", "1000"]);
    const exec = (...cmd: string[]) => pods.runtime.execSync({ containerId, cmd, timeout: 20n });
    const { stdout, stderr, exitCode } = await exec("sh", "-c", "echo out; echo err >&2");
    assert.deepEqual([stdout.toString(), stderr.toString(), exitCode], ["out\n", "err\n", 0]);
    assert.equal((await exec("sh", "-c", "echo some; exit 3")).exitCode, 3);
    assert.equal((await exec("true")).exitCode, 0);
    assert.equal((await exec("false")).exitCode, 1);
    await assert.rejects(
      exec("/no/such/program"),
      fails("Unknown", /failed to exec in container.*\/no\/such\/program/),
    );
    await assert.rejects(exec(), fails("Unknown", /args must not be empty/));
    await pods.remove(pod);
  });

  test("a command that outlasts its timeout is ended: DeadlineExceeded", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, ["sleep", "1000"]);
    const exec = pods.runtime.execSync({ containerId, cmd: ["sleep", "1000"], timeout: 1n });
    await assert.rejects(exec, fails("DeadlineExceeded", /timeout 1s exceeded/));
    assert.equal((await pods.runtime.execSync({ containerId, cmd: ["true"], timeout: 0n })).exitCode, 0);
    await pods.remove(pod);
  });

  test("commands need a running container", async () => {
    const pod = await pods.run();
    const containerId = await pods.create(pod, ["true"]);
    const exec = () => pods.runtime.execSync({ containerId, cmd: ["true"], timeout: 1n });
    await assert.rejects(exec(), fails("Unknown", /CONTAINER_CREATED/));
    await pods.runtime.startContainer({ containerId });
    await pods.untilExited(containerId);
    await assert.rejects(exec(), fails("Unknown", /CONTAINER_EXITED/));
    const unknown = pods.runtime.execSync({ containerId: "nope", cmd: ["true"], timeout: 1n });
    await assert.rejects(unknown, fails("NotFound"));
    await pods.remove(pod);
  });

  test("streams need a running container and at least one direction", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, ["sleep", "1000"]);
    const { runtime } = pods;
    const exec = { containerId, cmd: ["sh"], tty: false, stdin: false, stdout: true, stderr: true };
    assert.match((await runtime.exec(exec)).url, /^http:\/\/127\.0\.0\.1:\d+\/exec\//);
    await assert.rejects(runtime.exec({ ...exec, stdout: false, stderr: false }), fails("InvalidArgument"));
    await assert.rejects(runtime.exec({ ...exec, tty: true }), fails("InvalidArgument"));
    await assert.rejects(runtime.exec({ ...exec, containerId: "nope" }), fails("NotFound"));
    const attach = { containerId, tty: false, stdin: false, stdout: true, stderr: true };
    assert.match((await runtime.attach(attach)).url, /^http:\/\/127\.0\.0\.1:\d+\/attach\//);
    await assert.rejects(runtime.attach({ ...attach, containerId: "nope" }), fails("NotFound"));
    const forward = { podSandboxId: pod.id, port: [80] };
    assert.match((await runtime.portForward(forward)).url, /^http:\/\/127\.0\.0\.1:\d+\/portforward\//);
    await assert.rejects(runtime.portForward({ ...forward, podSandboxId: "nope" }), fails("NotFound"));
    await pods.remove(pod);
  });
}
