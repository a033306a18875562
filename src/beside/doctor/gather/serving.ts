import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { codeOf, messageOf, waitFor } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";

/** What the node API's port says to strangers. */
export type ServingFacts =
  | { readonly state: "off" }
  | { readonly state: "nobody listens"; readonly where: string }
  | {
      readonly state: "answers";
      readonly where: string;
      /** A suite outside of the strong ones that it agreed to; undefined: it refused all of them. */
      readonly weakSuite: string | undefined;
      /** A version before TLS 1.2 that it agreed to. */
      readonly oldVersion: string | undefined;
      /** What keeps it from showing a certificate. */
      readonly problem: string | undefined;
    };

/** Every suite before TLS 1.3 that is not one of the strong six, as OpenSSL calls them. */
const weak = [
  ...["ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA"],
  ...["ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384"],
  ...["AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA256", "AES256-SHA256", "AES128-SHA", "AES256-SHA"],
  ...["DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-SHA", "DHE-RSA-AES256-SHA"],
];

export async function gatherServing(need: NeedFact, signal: AbortSignal): Promise<ServingFacts> {
  const config = await need("config");
  const port = Number(settingText(config, "port"));
  if (settingText(config, "enableServer") === "false" || port <= 0) return { state: "off" };
  const host = reachable(settingText(config, "address"));
  const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const try_ = (options: ConnectionOptions) => handshake({ host, port, ...options }, signal);
  const [usual, weakSuite, oldVersion] = await Promise.all([
    try_({}),
    try_({ maxVersion: "TLSv1.2", ciphers: `${weak.join(":")}:@SECLEVEL=0` }),
    try_({ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" }),
  ]);
  if (usual.outcome === "nobody") return { state: "nobody listens", where };
  return {
    state: "answers",
    where,
    weakSuite: weakSuite.outcome === "agreed" ? weakSuite.suite : undefined,
    oldVersion: oldVersion.outcome === "agreed" ? oldVersion.version : undefined,
    problem: usual.outcome === "refused" ? usual.problem : undefined,
  };
}

/** An address that stands for all of them is reached by the loopback. */
function reachable(address: string): string {
  if (address === "" || address === "0.0.0.0") return "127.0.0.1";
  return address === "::" ? "::1" : address;
}

type Handshake =
  | { readonly outcome: "agreed"; readonly suite: string; readonly version: string }
  | { readonly outcome: "refused"; readonly problem: string }
  | { readonly outcome: "nobody" };

/** Shakes hands and hangs up; whom the certificate names is not the question here. */
async function handshake(options: ConnectionOptions, signal: AbortSignal): Promise<Handshake> {
  return await waitFor<Handshake>(signal, (done, fail) => {
    let socket: TLSSocket;
    try {
      // Nobody is believed or doubted: without the world's authorities, which take memory and time to load.
      socket = connect({ ...options, rejectUnauthorized: false, ca: [] });
    } catch (error) {
      fail(error);
      return () => {};
    }
    socket.on("secureConnect", () => {
      const { name } = socket.getCipher();
      done({ outcome: "agreed", suite: name, version: socket.getProtocol() ?? "" });
    });
    socket.on("error", (error) => {
      if (codeOf(error) === "ECONNREFUSED") done({ outcome: "nobody" });
      else done({ outcome: "refused", problem: messageOf(error) });
    });
    return () => socket.destroy();
  });
}
