// Certificates that the API server signs for this node: the first one, and every one after it.

export { nodeIdentity } from "./bootstrap-at-once.ts";
export { CertificateFileStore } from "./file-store.ts";
export { guardClientCertificate } from "./guard.ts";
export { issueCertificate, issuedWithinMs } from "./issue.ts";
export { ManagedCredentials } from "./managed-credentials.ts";
export { servingTemplate } from "./node-names.ts";
export {
  type CertificateFigures,
  CertificateRotation,
  type CertificateState,
  clientUse,
  serverUse,
} from "./rotation.ts";
export { bootstrapTls } from "./tls-bootstrap.ts";
