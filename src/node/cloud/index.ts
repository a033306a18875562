// What a cloud says of the machine that the node is: addresses, provider id, zone. A port, so that clouds can be added.
export { cloudProviderOf } from "./provider.ts";
export { CloudSync } from "./sync.ts";
