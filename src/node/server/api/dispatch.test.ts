import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import { untilClientLeaves } from "../http.ts";
import { Dispatcher } from "./dispatch.ts";
import { openGate } from "./gate.ts";

for (const [when, goesFirst] of [
  ["while it is made", false],
  ["before it is begun", true],
] as const) {
  test(`an answer that Node does not hold to be its connection's ends with it: gone ${when}`, async () => {
    let begun = (): void => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const dispatcher = new Dispatcher({
      mounts: [
        {
          type: "service",
          path: "/slow/",
          routes: [
            {
              methods: ["GET"],
              pattern: "",
              handle: async ({ response }) => {
                const leaving = untilClientLeaves(response);
                begun();
                if (!leaving.aborted) await once(leaving, "abort");
              },
            },
          ],
        },
      ],
      gate: openGate,
      clock: systemClock,
      log: silentLogger,
      onRequest: () => () => {},
    });
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.on("error", () => {});
    client.write("GET /slow/ HTTP/1.1\r\nHost: node\r\n\r\n");
    const [request] = (await once(server, "request")) as [IncomingMessage];
    const leave = async (): Promise<void> => {
      client.destroy();
      if (!request.socket.closed) await once(request.socket, "close");
    };
    if (goesFirst) await leave();
    dispatcher.request(request, new ServerResponse(request));
    await isBegun;
    if (!goesFirst) await leave();
    await dispatcher.settled();
    server.close();
    assert.ok(request.socket.destroyed);
  });
}
