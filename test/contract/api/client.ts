import { once } from "node:events";
import { Agent, request } from "node:https";
import { parse } from "yaml";

/** Where an API server is and as whom to speak to it. */
export interface ApiAccess {
  readonly server: string;
  readonly caPem: string;
  readonly certPem?: string;
  readonly keyPem?: string;
  readonly token?: string;
}

export interface Answer {
  readonly code: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** What stands at a place in an answer, such as `at(body, "metadata", "name")`. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let found = value;
  for (const key of path) found = (found as Readonly<Record<string | number, unknown>> | undefined | null)?.[key];
  return found;
}

export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== "string") throw new Error(`no text at ${path.join(".")} of ${JSON.stringify(value)}`);
  return found;
}

/** A plain client, so that tests see what is on the wire and nothing else. */
export class ApiClient implements Disposable {
  readonly #access: ApiAccess;
  readonly #agent: Agent;

  constructor(access: ApiAccess) {
    this.#access = access;
    this.#agent = new Agent({
      keepAlive: true,
      ca: access.caPem,
      ...(access.certPem !== undefined && { cert: access.certPem }),
      ...(access.keyPem !== undefined && { key: access.keyPem }),
    });
  }

  get = (path: string): Promise<Answer> => this.#send("GET", path);
  post = (path: string, body: unknown): Promise<Answer> => this.#send("POST", path, body);
  put = (path: string, body: unknown): Promise<Answer> => this.#send("PUT", path, body);
  delete = (path: string, body?: unknown): Promise<Answer> => this.#send("DELETE", path, body);

  patch(
    path: string,
    body: unknown,
    type: "strategic-merge" | "merge" | "json" | "apply" = "strategic-merge",
  ): Promise<Answer> {
    return this.#send(
      "PATCH",
      path,
      body,
      type === "apply" ? "application/apply-patch+yaml" : `application/${type}-patch+json`,
    );
  }

  /** The events of a watch as they come; leaving the loop ends it. */
  async *watch(path: string): AsyncGenerator<WatchEvent> {
    const call = request(`${this.#access.server}${path}`, { agent: this.#agent, headers: this.#headers() });
    call.end();
    const [response] = await once(call, "response");
    // Leaving the loop cuts the connection, of which the response complains.
    response.on("error", () => {});
    try {
      if (response.statusCode !== 200) throw new Error(`the watch was answered with ${response.statusCode}`);
      let rest = "";
      for await (const chunk of response.setEncoding("utf8")) {
        const lines = `${rest}${chunk}`.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield JSON.parse(line);
      }
    } finally {
      call.destroy();
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #headers(): Record<string, string> {
    const { token } = this.#access;
    return { accept: "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  }

  async #send(method: string, path: string, body?: unknown, contentType = "application/json"): Promise<Answer> {
    const content = Buffer.from(body === undefined ? "" : JSON.stringify(body));
    const contentHeaders = body === undefined ? {} : { "content-type": contentType, "content-length": content.length };
    const headers = { ...this.#headers(), ...contentHeaders };
    const call = request(`${this.#access.server}${path}`, { method, agent: this.#agent, headers });
    call.end(content);
    const [response] = await once(call, "response");
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const isJson = (response.headers["content-type"] ?? "").startsWith("application/json");
    return { code: response.statusCode, body: isJson ? JSON.parse(text) : text, headers: response.headers };
  }
}

/** Reads the current context of a kubeconfig that holds its certificates inside. */
export function accessOf(kubeconfig: string): ApiAccess {
  const config: unknown = parse(kubeconfig);
  const context = named(config, "contexts", textAt(config, "current-context"));
  const cluster = at(named(config, "clusters", textAt(context, "context", "cluster")), "cluster");
  const user = at(named(config, "users", textAt(context, "context", "user")), "user");
  const decoded = (value: unknown): string => Buffer.from(String(value), "base64").toString();
  const certificate = at(user, "client-certificate-data");
  const token = at(user, "token");
  return {
    server: textAt(cluster, "server"),
    caPem: decoded(at(cluster, "certificate-authority-data")),
    ...(typeof token === "string" && { token }),
    ...(certificate !== undefined && {
      certPem: decoded(certificate),
      keyPem: decoded(at(user, "client-key-data")),
    }),
  };
}

function named(config: unknown, list: string, name: string): unknown {
  const items = at(config, list);
  const found = Array.isArray(items) ? items.find((item) => at(item, "name") === name) : undefined;
  if (found === undefined) throw new Error(`the kubeconfig has no "${name}" in ${list}`);
  return found;
}
