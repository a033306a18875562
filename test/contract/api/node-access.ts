import { KeyObject, webcrypto } from "node:crypto";
import { type ApiAccess, ApiClient, at } from "./client.ts";

const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/** Credentials of a node, had as an administrator gets them by hand: a request, its approval, a signature. */
export async function nodeAccess(admin: ApiAccess, node: string, more: object = {}): Promise<ApiAccess> {
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const subject = [{ O: ["system:nodes"] }, { CN: [`system:node:${node}`] }];
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subject,
    keys,
    signingAlgorithm: algorithm,
  });
  using client = new ApiClient(admin);
  const name = `contract-${Math.random().toString(36).slice(2)}`;
  const spec = {
    request: Buffer.from(request.toString("pem")).toString("base64"),
    signerName: "kubernetes.io/kube-apiserver-client-kubelet",
    usages: ["digital signature", "client auth"],
    ...more,
  };
  const created = await client.post(requests, { metadata: { name }, spec });
  if (created.code !== 201) throw new Error(`the signing request was refused: ${JSON.stringify(created.body)}`);
  const status = { conditions: [{ type: "Approved", status: "True", reason: "Contract" }] };
  await client.patch(`${requests}/${name}/approval`, { status });
  try {
    for await (const { object } of client.watch(`${requests}?watch=1&fieldSelector=metadata.name%3D${name}`)) {
      const certificate = at(object, "status", "certificate");
      if (typeof certificate !== "string") continue;
      const keyPem = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
      return {
        server: admin.server,
        caPem: admin.caPem,
        certPem: Buffer.from(certificate, "base64").toString(),
        keyPem,
      };
    }
  } finally {
    await client.delete(`${requests}/${name}`);
  }
  throw new Error("the signing request was never signed; does a controller manager run?");
}
