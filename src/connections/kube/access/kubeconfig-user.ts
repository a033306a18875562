import type { FieldReader } from "../../../ground/base/index.ts";
import { type Material, readMaterial } from "./material.ts";

/** Who we are, as the `user` of a kubeconfig says it. */
export interface UserAccess {
  readonly certificate: { readonly certificate: Material; readonly key: Material } | undefined;
  /** Empty for none. */
  readonly token: string;
  /** Empty for none; its content wins over `token`. */
  readonly tokenFile: string;
  readonly basic: { readonly username: string; readonly password: string } | undefined;
  readonly exec: ExecPluginSettings | undefined;
  readonly impersonation: Readonly<Record<string, readonly string[]>>;
}

export interface ExecPluginSettings {
  /** A path, or a bare name that is looked up in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly apiVersion: string;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
}

const execVersions: readonly string[] = ["v1", "v1beta1"].map((name) => `client.authentication.k8s.io/${name}`);

export function readUser(user: FieldReader, resolve: (path: string) => string, problems: string[]): UserAccess {
  const certificate = readMaterial(user, "client-certificate", resolve, problems);
  const key = readMaterial(user, "client-key", resolve, problems);
  const username = user.string("username");
  const password = user.string("password");
  const tokenFile = user.string("tokenFile");
  const token = user.string("token");
  if (certificate !== undefined && key === undefined) {
    problems.push(`${user.at("client-key")}: found nothing beside a client certificate; want its key`);
  }
  if (certificate === undefined && key !== undefined) {
    problems.push(`${user.at("client-certificate")}: found nothing beside a client key; want its certificate`);
  }
  if (user.has("auth-provider")) {
    problems.push(`${user.at("auth-provider")}: built-in providers are gone from Kubernetes; want an exec plugin`);
  }
  if (user.has("exec") && (token !== "" || tokenFile !== "" || username !== "")) {
    problems.push(`${user.at("exec")}: found beside a token or password; want only one way to say who we are`);
  }
  if ((token !== "" || tokenFile !== "") && username !== "") {
    problems.push(`${user.at("username")}: found beside a token; want only one way to say who we are`);
  }
  return {
    certificate: certificate !== undefined && key !== undefined ? { certificate, key } : undefined,
    token,
    tokenFile: tokenFile === "" ? "" : resolve(tokenFile),
    basic: username === "" && password === "" ? undefined : { username, password },
    exec: user.has("exec") ? readExec(user.object("exec"), resolve, problems) : undefined,
    impersonation: readImpersonation(user, problems),
  };
}

function readExec(exec: FieldReader, resolve: (path: string) => string, problems: string[]): ExecPluginSettings {
  const command = exec.string("command");
  const apiVersion = exec.string("apiVersion");
  const interactiveMode = exec.string("interactiveMode");
  if (command === "") problems.push(`${exec.at("command")}: found nothing, want a program`);
  if (!execVersions.includes(apiVersion)) {
    const found = apiVersion === "" ? "nothing" : JSON.stringify(apiVersion);
    problems.push(`${exec.at("apiVersion")}: found ${found}, want ${execVersions.join(" or ")}`);
  }
  const modes = ["Never", "IfAvailable", "Always"];
  const needsMode = apiVersion === execVersions[0];
  if (interactiveMode === "" ? needsMode : !modes.includes(interactiveMode)) {
    const found = interactiveMode === "" ? "nothing" : JSON.stringify(interactiveMode);
    problems.push(`${exec.at("interactiveMode")}: found ${found}, want ${modes.join(", ")}`);
  } else if (interactiveMode === "Always") {
    problems.push(
      `${exec.at("interactiveMode")}: found "Always", but an agent has no terminal; want Never or IfAvailable`,
    );
  }
  return {
    // Like a shell: a name with a slash is a path, here relative to the kubeconfig; one without is looked up.
    command: command.includes("/") ? resolve(command) : command,
    args: exec.strings("args"),
    env: Object.fromEntries(exec.objects("env").map((item) => [item.string("name"), item.string("value")])),
    apiVersion,
    installHint: exec.string("installHint"),
    provideClusterInfo: exec.boolean("provideClusterInfo"),
  };
}

function readImpersonation(user: FieldReader, problems: string[]): Readonly<Record<string, readonly string[]>> {
  const headers: Record<string, readonly string[]> = {};
  const name = user.string("as");
  const uid = user.string("as-uid");
  const groups = user.strings("as-groups");
  const extra = user.object("as-user-extra");
  const asks = uid !== "" || groups.length > 0 || extra.names().length > 0;
  if (name === "") {
    if (asks) problems.push(`${user.at("as")}: found nothing beside other impersonation fields; want a user name`);
    return headers;
  }
  headers["impersonate-user"] = [name];
  if (uid !== "") headers["impersonate-uid"] = [uid];
  if (groups.length > 0) headers["impersonate-group"] = groups;
  for (const key of extra.names()) {
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = extra.strings(key);
  }
  return headers;
}
