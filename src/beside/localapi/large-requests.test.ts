import assert from "node:assert/strict";
import { request } from "node:https";
import { after, before, describe, test } from "node:test";
import { type ApiAccess, ApiClient, accessOf, at } from "../../../test/contract/api/client.ts";
import { type LocalApi, startLocalApi } from "./start.ts";

const inDefault = "/api/v1/namespaces/default";
const container = { name: "main", image: "i" };
const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));
const fields = (count: number): object => Object.fromEntries(many(count, (index) => [`k${index}`, "x"]));

describe("requests as large as they may be", () => {
  let api: LocalApi;
  let access: ApiAccess;
  let client: ApiClient;
  let serial = 0;
  before(async () => {
    api = await startLocalApi({ binder: "off" });
    access = accessOf(await api.adminKubeconfig());
    client = new ApiClient(access);
  });
  after(async () => {
    client[Symbol.dispose]();
    await api.stop();
  });

  const pod = (spec: object) =>
    client.post(`${inDefault}/pods`, {
      metadata: { name: `pod-${++serial}` },
      spec: { nodeName: "n1", containers: [container], ...spec },
    });
  const map = async (): Promise<string> => {
    const name = `map-${++serial}`;
    await client.post(`${inDefault}/configmaps`, { metadata: { name } });
    return `${inDefault}/configmaps/${name}`;
  };

  /** What takes n² for n items takes minutes here; what takes n log n is done before anyone looks. */
  const shapes: Record<string, (count: number) => Promise<unknown>> = {
    async "a strategic patch of a list by key, in order, and its removal"(count) {
      const node = `node-${++serial}`;
      await client.post("/api/v1/nodes", { metadata: { name: node } });
      const types = many(count, (index) => ({ type: `t${index}` }));
      const conditions = types.map(({ type }) => ({ type, status: "True" }));
      const path = `/api/v1/nodes/${node}/status`;
      await client.patch(path, { status: { conditions } });
      await client.patch(path, { status: { "$setElementOrder/conditions": types, conditions } });
      const { body } = await client.patch(path, {
        status: { conditions: types.map(({ type }) => ({ type, $patch: "delete" })) },
      });
      assert.equal(at(body, "status", "conditions"), undefined);
    },
    async "a strategic patch of plain values, and their removal"(count) {
      const path = await map();
      const finalizers = many(count, (index) => `example.com/f${index}`);
      await client.patch(path, { metadata: { finalizers } });
      await client.patch(path, { metadata: { "$deleteFromPrimitiveList/finalizers": finalizers } });
      await client.patch(path, { data: { $retainKeys: many(count, (index) => `k${index}`), ...fields(count) } });
    },
    async "configurations applied by two, with conflicts, and taken back"(count) {
      const name = `service-${++serial}`;
      const path = `${inDefault}/services/${name}`;
      const service = (prefix: string) => ({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name },
        spec: { ports: many(count, (index) => ({ port: index + 1, name: `${prefix}${index}` })) },
      });
      await client.patch(`${path}?fieldManager=a`, service("a"), "apply");
      const second = await client.patch(`${path}?fieldManager=b`, service("b"), "apply");
      assert.equal(second.code, 409);
      await client.patch(`${path}?fieldManager=a`, { apiVersion: "v1", kind: "Service", metadata: { name } }, "apply");
    },
    "tolerations that change": async (count) => {
      const { body } = await pod({});
      const tolerations = many(count, (index) => ({ key: `k${index}`, operator: "Exists" }));
      const path = `${inDefault}/pods/${at(body, "metadata", "name")}`;
      await client.patch(path, { spec: { tolerations } }, "merge");
      await client.patch(path, { spec: { tolerations } }, "merge");
    },
    "constraints of spreading": (count) =>
      pod({
        topologySpreadConstraints: many(count, (index) => ({
          maxSkew: 1,
          topologyKey: `k${index}`,
          whenUnsatisfiable: "DoNotSchedule",
        })),
      }),
    "containers, ports and mounts": (count) =>
      pod({
        volumes: many(count / 4, (index) => ({ name: `v${index}`, emptyDir: {} })),
        containers: [
          {
            ...container,
            ports: many(count / 4, (index) => ({ containerPort: index + 1 })),
            volumeMounts: many(count / 4, (index) => ({ name: `v${index}`, mountPath: `/m${index}` })),
            env: many(count / 4, (index) => ({ name: `E${index}`, value: "$(E1" })),
          },
        ],
      }),
    "a quantity of many digits": (count) =>
      pod({ containers: [{ ...container, resources: { limits: { cpu: "1".repeat(count * 100) } } }] }),
    "nothing but new lines": async (count) => await raw("PATCH", await map(), "\n".repeat(count * 100)),
    "brackets in brackets": async (count) => await raw("POST", `${inDefault}/configmaps`, "[".repeat(count * 100)),
    "fields nobody knows": async (count) =>
      await client.post(`${inDefault}/configmaps`, { metadata: { name: `map-${++serial}` }, ...fields(count) }),
    "copies of copies": async () => {
      const path = await map();
      const copies = many(60, (index) => ({ op: "copy", from: "/metadata", path: `/metadata/x${index}` }));
      assert.equal((await client.patch(path, copies, "json")).code, 413);
    },
  };

  function raw(method: string, path: string, body: string): Promise<number | undefined> {
    const { certPem: cert, keyPem: key, caPem: ca, server } = access;
    const type = method === "PATCH" ? "application/apply-patch+yaml" : "application/json";
    return new Promise((resolve, reject) => {
      const options = { method, cert, key, ca, agent: false as const, headers: { "content-type": type } };
      request(`${server}${path}?fieldManager=x`, options, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .once("error", reject)
        .end(body);
    });
  }

  for (const [name, ask] of Object.entries(shapes)) {
    test(name, async () => {
      const busyMs = async (count: number): Promise<number> => {
        const before = process.cpuUsage();
        await ask(count);
        const { user, system } = process.cpuUsage(before);
        return (user + system) / 1000;
      };
      await busyMs(500);
      const [few, most] = [await busyMs(2_500), await busyMs(10_000)];
      // Four times as much may take four times as long, and as much again for a collection of garbage at the wrong time.
      assert.ok(most < few * 8 + 500, `2,500 took ${few} ms of the processor, 10,000 took ${most} ms`);
    });
  }

  test("warnings that no header could hold are left out, and other letters arrive", async () => {
    const body = { metadata: { name: `map-${++serial}` }, "größe木\u007f": 1, ...fields(5_000) };
    const { code, headers } = await client.post(`${inDefault}/configmaps`, body);
    assert.equal(code, 201);
    const warning = Buffer.from(String(headers["warning"]), "latin1").toString();
    assert.match(warning, /unknown field .*größe木/);
    assert.ok(warning.length < 5_000);
  });

  test("a namespace of many objects is emptied in the time it takes to look at each once", async () => {
    await client.post("/api/v1/namespaces", { metadata: { name: "crowded" } });
    const path = "/api/v1/namespaces/crowded/configmaps";
    for (let made = 0; made < 2_000; made += 50)
      await Promise.all(many(50, (index) => client.post(path, { metadata: { name: `m${made + index}` } })));
    const before = process.cpuUsage();
    await client.delete("/api/v1/namespaces/crowded");
    assert.equal((await client.get("/api/v1/namespaces/crowded")).code, 404);
    assert.ok(process.cpuUsage(before).user < 3_000_000);
  });
});
