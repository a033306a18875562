import type { KeyPair } from "./auth/certificates.ts";

export type KubeconfigUser = { readonly name: string } & (KeyPair | { readonly token: string });

/** A kubeconfig that holds all it needs; JSON is YAML. */
export function kubeconfig(server: string, caPem: string, user: KubeconfigUser): string {
  const credentials =
    "token" in user
      ? { token: user.token }
      : { "client-certificate-data": base64(user.certPem), "client-key-data": base64(user.keyPem) };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "nodelet", cluster: { server, "certificate-authority-data": base64(caPem) } }],
    users: [{ name: user.name, user: credentials }],
    contexts: [{ name: "nodelet", context: { cluster: "nodelet", user: user.name } }],
    "current-context": "nodelet",
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
