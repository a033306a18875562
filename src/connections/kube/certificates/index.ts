// Certificates that the API server signs for this node: the first one, and every one after it.
export { bootstrapClientCertificate, nodeIdentity } from "./bootstrap.ts";
export { chooseBootstrap } from "./bootstrap-choice.ts";
export type { CertificateTemplate, KeptCertificate } from "./facts.ts";
export { CertificateFileStore } from "./file-store.ts";
export { guardClientCertificate } from "./guard.ts";
export { issueCertificate } from "./issue.ts";
export { writeKubeconfig } from "./kubeconfig-file.ts";
export { ManagedCredentials } from "./managed-credentials.ts";
export { type CertificateFigures, CertificateManager, clientUse, serverUse } from "./manager.ts";
export { servingTemplate } from "./node-names.ts";
