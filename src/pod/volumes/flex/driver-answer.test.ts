import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnswer } from "./driver-answer.ts";

const usual = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
};

for (const { text, answer } of [
  { text: '{"status":"Success"}', answer: { status: "Success", device: "", capabilities: usual } },
  {
    text: '{"Status":"Success","DEVICE":"/dev/x"}',
    answer: { status: "Success", device: "/dev/x", capabilities: usual },
  },
  {
    text: '{"status":"Success","capabilities":{"attach":false,"SELinuxRelabel":false,"other":1}}',
    answer: { status: "Success", device: "", capabilities: { ...usual, attach: false, selinuxRelabel: false } },
  },
  { text: '{"status":"Success","capabilities":null}', answer: { status: "Success", device: "", capabilities: usual } },
  { text: '{"status":"Not supported"}', answer: { status: "Not supported" } },
  {
    text: '{"status":"Failure","message":"no space"}',
    answer: {
      status: "Failure",
      isRefusal: true,
      message: "mount command failed, status: Failure, reason: no space",
    },
  },
  {
    text: '{"message":7}',
    answer: { status: "Failure", isRefusal: true, message: "mount command failed, status: , reason: " },
  },
  ...["", "done", "[]", "null", '"Success"', '{"status":"Success"} {"status":"Success"}'].map((text) => ({
    text,
    answer: { status: "Failure", isRefusal: false, message: "mount command answered with what is not JSON" },
  })),
  {
    text: '{"status":"Success","capabilities":{"attach":"no"}}',
    answer: {
      status: "Failure",
      isRefusal: false,
      message: "mount command answered with capabilities that are not true or false",
    },
  },
]) {
  test(`a driver that prints ${JSON.stringify(text)}`, () => assert.deepEqual(readAnswer("mount", text), answer));
}
