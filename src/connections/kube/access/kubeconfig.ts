import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { FieldReader, loadedPart, messageOf } from "../../../ground/base/index.ts";
import { readUser, type UserAccess } from "./kubeconfig-user.ts";
import { type Material, readMaterial } from "./material.ts";

/** What the current context of a kubeconfig says: which server, how to know it, and who we are. */
export interface ClusterAccess {
  /** The file it was read from, for messages. */
  readonly file: string;
  readonly server: URL;
  /** Checked instead of the server's host name when not empty. */
  readonly tlsServerName: string;
  readonly trust: ServerTrust;
  /** Undefined: as the environment says. */
  readonly proxyUrl: URL | undefined;
  readonly namespace: string;
  readonly user: UserAccess;
  /** The cluster's extension for exec plugins, handed on as it is. */
  readonly execExtension: unknown;
}

export type ServerTrust =
  | { readonly type: "system" }
  | { readonly type: "authority"; readonly certificates: Material }
  | { readonly type: "anyone" };

/** A kubeconfig that cannot be used; says everything that is wrong with it, never a value that could be a secret. */
export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
  readonly file: string;
  readonly problems: readonly string[];

  constructor(file: string, problems: readonly string[], cause?: unknown) {
    super(`Cannot use the kubeconfig ${file}: ${problems.join("; ")}`, { cause });
    this.file = file;
    this.problems = problems;
  }
}

export async function loadKubeconfig(file: string): Promise<ClusterAccess> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new KubeconfigError(file, [messageOf(error)], error);
  }
  return parseKubeconfig(text, file);
}

/** The current context of the text; paths in it are relative to the directory of `file`. */
export async function parseKubeconfig(text: string, file: string): Promise<ClusterAccess> {
  const { parseDocument } = await loadedPart(import("yaml"));
  const document = parseDocument(text, { version: "1.1", uniqueKeys: true });
  const [broken] = document.errors;
  if (broken !== undefined) {
    // Only the first line: those after it quote the file, which may hold a token.
    throw new KubeconfigError(file, [`not valid YAML: ${broken.message.split("\n", 1)[0]}`]);
  }
  const problems: string[] = [];
  const access = readAccess(FieldReader.of(document.toJS() ?? {}, "", problems), file, problems);
  if (access === undefined || problems.length > 0) throw new KubeconfigError(file, problems);
  return access;
}

function readAccess(root: FieldReader, file: string, problems: string[]): ClusterAccess | undefined {
  const contextName = root.string("current-context");
  if (contextName === "") {
    problems.push(
      `current-context: found nothing, want the name of one of the contexts (${namesOf(root, "contexts")})`,
    );
    return undefined;
  }
  const context = entryOf(root, "contexts", contextName, "current-context", problems)?.object("context");
  if (context === undefined) return undefined;
  const clusterName = context.string("cluster");
  const userName = context.string("user");
  const cluster = entryOf(root, "clusters", clusterName, context.at("cluster"), problems)?.object("cluster");
  // A context without a user is anonymous.
  const user = userName === "" ? FieldReader.of({}, "users[].user", problems) : undefined;
  const named = user ?? entryOf(root, "users", userName, context.at("user"), problems)?.object("user");
  if (cluster === undefined || named === undefined) return undefined;

  const resolve = (path: string): string => (isAbsolute(path) ? path : join(dirname(file), path));
  const access = readUser(named, resolve, problems);
  const trust = readTrust(cluster, resolve, problems);
  const usesTls = trust.type !== "system" || access.certificate !== undefined;
  const server = readServer(cluster, usesTls, problems);
  if (server === undefined) return undefined;
  return {
    file,
    server,
    tlsServerName: cluster.string("tls-server-name"),
    trust,
    proxyUrl: readProxy(cluster, problems),
    namespace: context.string("namespace") || "default",
    user: access,
    execExtension: cluster
      .objects("extensions")
      .find((extension) => extension.string("name") === "client.authentication.k8s.io/exec")
      ?.value("extension"),
  };
}

function namesOf(root: FieldReader, list: string): string {
  const names = root.objects(list).map((entry) => JSON.stringify(entry.string("name")));
  return names.length === 0 ? "there are none" : names.join(", ");
}

function entryOf(
  root: FieldReader,
  list: string,
  name: string,
  wantedBy: string,
  problems: string[],
): FieldReader | undefined {
  const matches = root.objects(list).filter((entry) => entry.string("name") === name);
  const [first, second] = matches;
  if (first === undefined || name === "") {
    const found = name === "" ? "nothing" : JSON.stringify(name);
    problems.push(`${wantedBy}: found ${found}, want the name of one of the ${list} (${namesOf(root, list)})`);
    return undefined;
  }
  if (second !== undefined) problems.push(`${second.at("name")}: ${JSON.stringify(name)} stands twice; want one entry`);
  return first;
}

function readTrust(cluster: FieldReader, resolve: (path: string) => string, problems: string[]): ServerTrust {
  const certificates = readMaterial(cluster, "certificate-authority", resolve, problems);
  if (cluster.boolean("insecure-skip-tls-verify")) {
    if (certificates !== undefined) {
      problems.push(
        `${cluster.at("insecure-skip-tls-verify")}: found true beside a certificate authority; want only one of them`,
      );
    }
    return { type: "anyone" };
  }
  return certificates === undefined ? { type: "system" } : { type: "authority", certificates };
}

function readServer(cluster: FieldReader, usesTls: boolean, problems: string[]): URL | undefined {
  const text = cluster.string("server");
  const want = "want an address such as https://10.0.0.1:6443";
  if (text === "") {
    problems.push(`${cluster.at("server")}: found nothing, ${want}`);
    return undefined;
  }
  const withScheme = text.includes("://") ? text : `${usesTls ? "https" : "http"}://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:") || url.hostname === "") {
    // People write passwords into addresses.
    const shown = text.replace(/^([^/]*\/\/)?[^/]*@/, "$1<masked>@");
    problems.push(`${cluster.at("server")}: found ${JSON.stringify(shown)}, ${want}`);
    return undefined;
  }
  return url;
}

function readProxy(cluster: FieldReader, problems: string[]): URL | undefined {
  const text = cluster.string("proxy-url");
  if (text === "") return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && ["http:", "https:", "socks5:"].includes(url.protocol) && url.hostname !== "") return url;
  // Not quoted: a proxy's address may hold its password.
  problems.push(`${cluster.at("proxy-url")}: want an address that starts with http://, https:// or socks5://`);
  return undefined;
}
