import { messageOf } from "../../ground/base/index.ts";
import type { DnsSettings } from "./mapping/index.ts";

type ReadHostDns = () => Promise<DnsSettings["hostDns"]>;

/**
 * The node's resolver settings, read for each sandbox: they change with the network (DHCP, VPN), and the file may come
 * later than the agent. While it can't be read, pods wait; the agent does not.
 */
export function hostDnsReader(read: ReadHostDns): ReadHostDns {
  return async () => {
    try {
      return await read();
    } catch (error) {
      throw new Error(`cannot read the node's resolver settings (resolvConf): ${messageOf(error)}`, { cause: error });
    }
  };
}
