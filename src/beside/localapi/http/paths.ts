import type { TokenSigner } from "../auth/token-signer.ts";
import { discover } from "../discovery/discovery.ts";
import { openApi } from "../openapi/openapi.ts";
import type { ApiRequest } from "./api.ts";
import { json, plainText, type Reply } from "./reply.ts";
import type { PathRequest } from "./request-info.ts";

const version = {
  major: "1",
  minor: "34",
  emulationMajor: "1",
  emulationMinor: "34",
  minCompatibilityMajor: "1",
  minCompatibilityMinor: "33",
  gitVersion: "v1.34.0+nodelet",
  gitCommit: "",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "linux/amd64",
};

/** Answers what is not about objects: health, version, discovery, the keys that tokens are signed with. */
export function pathHandler(signer: TokenSigner): (path: PathRequest, request: ApiRequest) => Reply | undefined {
  return ({ path }, { accept }) => {
    switch (path) {
      case "/healthz":
      case "/livez":
      case "/readyz":
        return plainText("ok");
      case "/version":
      case "/version/":
        return json(version);
      case "/openid/v1/jwks":
        return json(signer.keySet());
      case "/.well-known/openid-configuration":
        return json({
          issuer: signer.issuer,
          jwks_uri: `${signer.issuer}/openid/v1/jwks`,
          response_types_supported: ["id_token"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["ES256"],
        });
      default:
        return path.startsWith("/openapi/") ? openApi(path, accept) : discover(path, accept);
    }
  };
}
