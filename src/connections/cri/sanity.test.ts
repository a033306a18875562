import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContainerStatusResponse,
  ImageStatusResponse,
  PodSandboxStatusResponse,
  StatusResponse,
  VersionResponse,
} from "./gen/index.ts";
import { problemWith } from "./sanity.ts";

const version = { version: "0.1.0", runtimeName: "containerd", runtimeVersion: "1.6.20", runtimeApiVersion: "v1" };
const sandbox = { id: "s", metadata: { name: "n", namespace: "ns", uid: "u" }, createdAt: 1n };
const container = { id: "c", metadata: { name: "n" }, createdAt: 1n, image: { image: "i" }, imageRef: "r" };
const conditions = [{ type: "RuntimeReady" }, { type: "NetworkReady" }];

for (const { operation, response, problem } of [
  { operation: "version", response: VersionResponse.fromPartial(version), problem: undefined },
  {
    operation: "version",
    response: VersionResponse.fromPartial({ ...version, runtimeName: "", runtimeApiVersion: "" }),
    problem: "not all fields are set in VersionResponse (missing RuntimeName, RuntimeApiVersion)",
  },
  { operation: "runPodSandbox", response: { podSandboxId: "x" }, problem: undefined },
  { operation: "runPodSandbox", response: { podSandboxId: "" }, problem: "PodSandboxId is not set for sandbox" },
  { operation: "createContainer", response: { containerId: "x" }, problem: undefined },
  { operation: "createContainer", response: { containerId: "" }, problem: "ContainerId is not set for container" },
  { operation: "exec", response: { url: "" }, problem: "URL is not set" },
  { operation: "attach", response: { url: "" }, problem: "URL is not set" },
  { operation: "portForward", response: { url: "" }, problem: "URL is not set" },
  { operation: "exec", response: { url: "http://127.0.0.1/exec/x" }, problem: undefined },
  {
    operation: "podSandboxStatus",
    response: PodSandboxStatusResponse.fromPartial({ status: sandbox }),
    problem: undefined,
  },
  {
    operation: "podSandboxStatus",
    response: PodSandboxStatusResponse.fromPartial({}),
    problem: "pod sandbox status is nil",
  },
  {
    operation: "podSandboxStatus",
    response: PodSandboxStatusResponse.fromPartial({ status: { id: "s", metadata: { name: "n" } } }),
    problem: "not all fields are set in PodSandboxStatus (missing Metadata.Namespace, Metadata.Uid, CreatedAt)",
  },
  {
    operation: "containerStatus",
    response: ContainerStatusResponse.fromPartial({ status: container }),
    problem: undefined,
  },
  {
    operation: "containerStatus",
    response: ContainerStatusResponse.fromPartial({}),
    problem: "container status is nil",
  },
  {
    operation: "containerStatus",
    response: ContainerStatusResponse.fromPartial({ status: { id: "c" } }),
    problem: "not all fields are set in ContainerStatus (missing Metadata.Name, CreatedAt, Image.Image, ImageRef)",
  },
  { operation: "status", response: StatusResponse.fromPartial({ status: { conditions } }), problem: undefined },
  {
    operation: "status",
    response: StatusResponse.fromPartial({ status: { conditions: conditions.slice(1) } }),
    problem: "RuntimeReady or NetworkReady condition are not set",
  },
  {
    operation: "status",
    response: StatusResponse.fromPartial({}),
    problem: "RuntimeReady or NetworkReady condition are not set",
  },
  { operation: "imageStatus", response: ImageStatusResponse.fromPartial({}), problem: undefined },
  {
    operation: "imageStatus",
    response: ImageStatusResponse.fromPartial({ image: { id: "i", size: 1n } }),
    problem: undefined,
  },
  {
    operation: "imageStatus",
    response: ImageStatusResponse.fromPartial({ image: { id: "i" } }),
    problem: "Id or size of image is not set (missing Size)",
  },
  { operation: "pullImage", response: { imageRef: "" }, problem: "imageRef of the pulled image is not set" },
  { operation: "pullImage", response: { imageRef: "sha256:1" }, problem: undefined },
  { operation: "removeContainer", response: {}, problem: undefined },
] as const) {
  test(`${operation}: ${problem ?? "fine"}`, () => assert.equal(problemWith(operation, response), problem));
}
