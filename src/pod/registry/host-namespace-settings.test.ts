import assert from "node:assert/strict";
import { test } from "node:test";
import { hostNamespaceSettings } from "./host-namespace-settings.ts";

test("each list is read from its own variable", () => {
  const environment = { NODELET_HOST_NETWORK_SOURCES: "file, http,api,*", NODELET_HOST_PID_SOURCES: "" };
  assert.deepEqual(hostNamespaceSettings(environment), {
    hostNetworkSources: ["file", "http", "api", "*"],
    hostPidSources: [],
    hostIpcSources: ["*"],
  });
});

test("an unknown source is a clear error at start", () =>
  assert.throws(
    () => hostNamespaceSettings({ NODELET_HOST_IPC_SOURCES: "file,usb" }),
    (error: Error) =>
      /NODELET_HOST_IPC_SOURCES is "file,usb"/.test(error.message) &&
      error.cause instanceof Error &&
      /unknown pod source "usb"; wanted one of "file"/.test(error.cause.message),
  ));
