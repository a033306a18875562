// Kubeconfig files: which server, how to know it, which proxy, and who we are.
export {
  type ClientCertificate,
  CredentialError,
  type Credentials,
  certificateId,
  type Headers,
} from "./credentials.ts";
export { type ClusterAccess, loadKubeconfig, parseKubeconfig } from "./kubeconfig.ts";
export { LiveMaterial } from "./material.ts";
export { type Environment, proxyFromEnvironment } from "./proxy-choice.ts";
export { UserCredentials } from "./user-credentials.ts";
