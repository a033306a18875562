import { isIP } from "node:net";
import { FieldReader } from "../../ground/base/index.ts";
import type { NodeAddress } from "../../ground/model/index.ts";

/** What a cloud knows of the machine that this node is. */
export interface CloudInstance {
  /** `<provider>://<instance>`; empty when the cloud does not say. */
  readonly providerId: string;
  readonly addresses: readonly NodeAddress[];
  readonly zone: string;
  readonly region: string;
  readonly instanceType: string;
}

const mostAddresses = 64;
const longestProviderId = 1_024;
const ipTypes: ReadonlySet<string> = new Set(["InternalIP", "ExternalIP"]);
const nameTypes: ReadonlySet<string> = new Set(["Hostname", "InternalDNS", "ExternalDNS"]);
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const hostName = /^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$/;

/** Reads `{providerID, addresses: [{type, address}], zone, region, instanceType}`; throws with all that is wrong. */
export function parseInstance(text: string): CloudInstance {
  const problems: string[] = [];
  const fields = FieldReader.of(parse(text), "", problems);
  const addresses = fields.objects("addresses").map((entry): NodeAddress => {
    const address: NodeAddress = { type: entry.string("type"), address: entry.string("address") };
    if (!isAddress(address)) problems.push(`${entry.path}: ${JSON.stringify(address)} is no address of a node`);
    return address;
  });
  if (addresses.length > mostAddresses) problems.push(`addresses: more than ${mostAddresses}`);
  const label = (name: "zone" | "region" | "instanceType"): string => {
    const value = fields.string(name);
    if (!labelValue.test(value)) problems.push(`${name}: ${JSON.stringify(value.slice(0, 100))} can't be a label`);
    return value;
  };
  const providerId = fields.string("providerID");
  if (providerId.length > longestProviderId) problems.push(`providerID: longer than ${longestProviderId}`);
  const instance = {
    providerId,
    addresses,
    zone: label("zone"),
    region: label("region"),
    instanceType: label("instanceType"),
  };
  if (problems.length > 0) throw new Error(`the answer can't be used: ${problems.slice(0, 5).join("; ")}`);
  return instance;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error("the answer is no JSON", { cause: error });
  }
}

function isAddress({ type, address }: NodeAddress): boolean {
  // With a zone (fe80::1%eth0) it means something to this machine only, and API servers refuse it.
  if (ipTypes.has(type)) return isIP(address) !== 0 && !address.includes("%");
  return nameTypes.has(type) && hostName.test(address);
}
