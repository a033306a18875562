import { FieldReader, loadedPart, messageOf, parseDuration } from "../../ground/base/index.ts";
import type { CredentialProviderSettings, TokenSettings } from "./plugin-config.ts";
import { parseRegistryPattern } from "./registry-pattern.ts";

const configVersions = ["v1", "v1beta1", "v1alpha1"].map((version) => `kubelet.config.k8s.io/${version}`);
const requestVersions = ["v1", "v1beta1", "v1alpha1"].map((version) => `credentialprovider.kubelet.k8s.io/${version}`);
const qualifiedName =
  /^(?=.{1,317}$)(?:(?=[^/]{1,253}\/)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?(?=[^/]{1,63}$)[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/;

export interface DecodedProviders {
  readonly providers: readonly CredentialProviderSettings[];
  readonly problems: readonly string[];
}

/** Decodes one CredentialProviderConfig strictly: an unknown, doubled or mistyped field is a problem, not ignored. */
export async function decodeProviders(
  text: string,
  gates: { readonly allowTokens: boolean },
): Promise<DecodedProviders> {
  const { parseDocument } = await loadedPart(import("yaml"));
  const yaml = parseDocument(text, { version: "1.1", uniqueKeys: true });
  const syntax = yaml.errors.map((error) => error.message);
  if (syntax.length > 0) return { providers: [], problems: syntax };
  let content: unknown;
  try {
    content = yaml.toJS();
  } catch (error) {
    return { providers: [], problems: [messageOf(error)] };
  }
  const problems: string[] = [];
  const config = FieldReader.of(content, "", problems);
  const apiVersion = config.string("apiVersion");
  const kind = config.string("kind");
  if (!configVersions.includes(apiVersion)) {
    problems.push(`apiVersion: found ${JSON.stringify(apiVersion)}, want one of ${configVersions.join(", ")}`);
  }
  if (kind !== "CredentialProviderConfig") {
    problems.push(`kind: found ${JSON.stringify(kind)}, want "CredentialProviderConfig"`);
  }
  const entries = config.objects("providers");
  if (entries.length === 0) problems.push("providers: at least 1 item in plugins is required");
  const rules: DecodeRules = { tokensInConfig: apiVersion.endsWith("/v1"), allowTokens: gates.allowTokens };
  const seen = new Set<string>();
  const providers = entries.map((reader) => {
    const provider = decodeProvider(reader, rules, problems);
    if (seen.has(provider.name))
      problems.push(`${reader.at("name")}: duplicate value ${JSON.stringify(provider.name)}`);
    seen.add(provider.name);
    return provider;
  });
  config.refuseOthers();
  return { providers, problems };
}

interface DecodeRules {
  readonly tokensInConfig: boolean;
  readonly allowTokens: boolean;
}

function decodeProvider(reader: FieldReader, rules: DecodeRules, problems: string[]): CredentialProviderSettings {
  const name = reader.string("name");
  if (name === "") problems.push(`${reader.at("name")}: required, the name of the program in the plugin directory`);
  else if (/[/\s]/.test(name) || name === "." || name === "..") {
    problems.push(`${reader.at("name")}: ${JSON.stringify(name)} must not hold "/" or spaces, nor be "." or ".."`);
  }
  const matchImages = reader.strings("matchImages").flatMap((image, index) => {
    const pattern = image === "" ? undefined : parseRegistryPattern(image);
    if (pattern === undefined) {
      problems.push(`${reader.at("matchImages")}[${index}]: ${JSON.stringify(image)} is not host[:port][/path]`);
    }
    return pattern === undefined ? [] : [pattern];
  });
  if (!reader.has("matchImages") || reader.strings("matchImages").length === 0) {
    problems.push(`${reader.at("matchImages")}: at least 1 item in matchImages is required`);
  }
  const apiVersion = reader.string("apiVersion");
  if (!requestVersions.includes(apiVersion)) {
    problems.push(
      `${reader.at("apiVersion")}: found ${JSON.stringify(apiVersion)}, want one of ${requestVersions.join(", ")}`,
    );
  }
  const provider = {
    name,
    matchImages,
    defaultCacheMs: decodeCacheDuration(reader, problems),
    apiVersion,
    args: reader.strings("args"),
    env: reader.objects("env").map((variable) => {
      const decoded = { name: variable.string("name"), value: variable.string("value") };
      if (decoded.name === "") problems.push(`${variable.at("name")}: required`);
      variable.refuseOthers();
      return decoded;
    }),
    token: decodeToken(reader, apiVersion, rules, problems),
  };
  reader.refuseOthers();
  return provider;
}

function decodeCacheDuration(reader: FieldReader, problems: string[]): number {
  const at = reader.at("defaultCacheDuration");
  if (!reader.has("defaultCacheDuration")) {
    problems.push(`${at}: required, for example "12h"`);
    return 0;
  }
  const text = reader.string("defaultCacheDuration");
  const cacheMs = parseDuration(text);
  if (cacheMs === undefined) problems.push(`${at}: ${JSON.stringify(text)} is not a duration such as "12h"`);
  else if (cacheMs < 0) problems.push(`${at}: ${JSON.stringify(text)} must not be negative`);
  return cacheMs ?? 0;
}

function decodeToken(
  reader: FieldReader,
  apiVersion: string,
  rules: DecodeRules,
  problems: string[],
): TokenSettings | undefined {
  if (!rules.tokensInConfig || !reader.has("tokenAttributes")) return undefined;
  const token = reader.object("tokenAttributes");
  if (!rules.allowTokens) {
    problems.push(
      `${token.path}: needs the feature gate KubeletServiceAccountTokenForCredentialProviders, which is off`,
    );
  }
  if (apiVersion !== requestVersions[0]) problems.push(`${token.path}: needs apiVersion ${requestVersions[0]}`);
  const audience = token.string("serviceAccountTokenAudience");
  if (audience === "") problems.push(`${token.at("serviceAccountTokenAudience")}: required`);
  const cacheBy = token.string("cacheType");
  if (cacheBy !== "ServiceAccount" && cacheBy !== "Token") {
    problems.push(`${token.at("cacheType")}: found ${JSON.stringify(cacheBy)}, want ServiceAccount or Token`);
  }
  const requireServiceAccount = token.boolean("requireServiceAccount");
  if (!token.has("requireServiceAccount")) problems.push(`${token.at("requireServiceAccount")}: required`);
  const requiredAnnotations = annotationKeys(token, "requiredServiceAccountAnnotationKeys", problems);
  const optionalAnnotations = annotationKeys(token, "optionalServiceAccountAnnotationKeys", problems);
  if (requiredAnnotations.length > 0 && !requireServiceAccount) {
    problems.push(`${token.at("requiredServiceAccountAnnotationKeys")}: needs requireServiceAccount true`);
  }
  for (const key of optionalAnnotations.filter((optional) => requiredAnnotations.includes(optional))) {
    problems.push(`${token.path}: annotation key ${JSON.stringify(key)} is both required and optional`);
  }
  token.refuseOthers();
  return {
    audience,
    cacheBy: cacheBy === "Token" ? "Token" : "ServiceAccount",
    requireServiceAccount,
    requiredAnnotations,
    optionalAnnotations,
  };
}

function annotationKeys(token: FieldReader, field: string, problems: string[]): readonly string[] {
  const keys = token.strings(field);
  keys.forEach((key, index) => {
    if (!qualifiedName.test(key)) problems.push(`${token.at(field)}[${index}]: ${JSON.stringify(key)} is no label key`);
    if (keys.indexOf(key) !== index)
      problems.push(`${token.at(field)}[${index}]: duplicate value ${JSON.stringify(key)}`);
  });
  return keys;
}
