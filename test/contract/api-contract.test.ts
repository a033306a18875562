import { readFile } from "node:fs/promises";
import { startLocalApi } from "../../src/beside/localapi/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import { accessOf } from "./api/client.ts";
import { nodeAccess } from "./api/node-access.ts";
import { apiContract } from "./api-contract.ts";

// By hand: NODELET_API_KUBECONFIG=admin.kubeconfig runs the same tests against that server.
const realServer = process.env["NODELET_API_KUBECONFIG"];

if (realServer === undefined) {
  apiContract("local API server", async () => {
    const scope = new TaskScope();
    const listen = { host: "127.0.0.1", port: 0 };
    const api = await startLocalApi({ listen, clock: systemClock, log: silentLogger, scope });
    const admin = accessOf(await api.adminKubeconfig());
    return {
      admin,
      node: async (name) => await nodeAccess(admin, name),
      compact: () => api.compact(),
      async [Symbol.asyncDispose]() {
        await api.stop();
        await scope.stop();
      },
    };
  });
} else {
  apiContract(`server of ${realServer}`, async () => {
    const admin = accessOf(await readFile(realServer, "utf8"));
    return { admin, node: async (name) => await nodeAccess(admin, name), async [Symbol.asyncDispose]() {} };
  });
}
