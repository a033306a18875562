import assert from "node:assert/strict";
import { test } from "node:test";
import { containerName, distinctName, parseName, sandboxName } from "./names.ts";

const pod = { pod: "web", namespace: "team", uid: "0a-1", attempt: 3 };

test("names are made and read back, with or without what made them distinct", () => {
  assert.equal(sandboxName(pod), "k8s_POD_web_team_0a-1_3");
  assert.equal(containerName({ ...pod, container: "main" }), "k8s_main_web_team_0a-1_3");
  assert.deepEqual(parseName("/k8s_main_web_team_0a-1_3"), { ...pod, container: "main" });
  assert.deepEqual(parseName(distinctName(sandboxName(pod), 0xab)), { ...pod, container: "POD" });
});

for (const name of [
  "",
  "web",
  "k8s_a_b_c_d",
  "k8s_a_b_c_d_x",
  "k8s_a_b_c_d_-1",
  "k8s_a_b_c_d_4294967296",
  "k8s_a_b_c_d_1_2_3",
  "x_a_b_c_d_1",
  "k8s___c_d_1",
]) {
  test(`"${name}" is no part of a pod`, () => assert.equal(parseName(name), undefined));
}
