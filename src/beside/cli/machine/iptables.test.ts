import assert from "node:assert/strict";
import { test } from "node:test";
import { removalScript } from "./iptables.ts";

const pod = (network: string, ip: string, chain: string): string =>
  `-A POSTROUTING -s ${ip}/32 -m comment --comment "name: \\"${network}\\" id: \\"1\\"" -j ${chain}`;
const hostPort = (network: string, port: number, chain: string): string =>
  `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"${network}\\" id: \\"1\\"" -m multiport --dports ${port} -j ${chain}`;
const shared = [
  "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
  "-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
  '-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
  '-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000',
];

function saved(chains: readonly string[], rules: readonly string[]): string {
  const all = ["PREROUTING", "POSTROUTING", ...chains].map((chain) => `:${chain} - [0:0]`);
  return ["# Generated", "*nat", ...all, ...rules, "COMMIT", ""].join("\n");
}
const sharedChains = ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"];

test("nothing of ours, nothing to do", () => {
  assert.equal(removalScript(saved([], []), "mine"), undefined);
  const other = saved(["CNI-aa"], [pod("theirs", "10.0.0.2", "CNI-aa"), "-A POSTROUTING -j MASQUERADE"]);
  assert.equal(removalScript(other, "mine"), undefined);
});

test("our pods' chains go with what jumps there; those of a network with a similar name stay", () => {
  const inside = '-A CNI-aa ! -d 224.0.0.0/4 -m comment --comment "name: \\"mine\\" id: \\"1\\"" -j MASQUERADE';
  const rules = [pod("mine", "10.0.0.2", "CNI-aa"), pod("mine-2", "10.1.0.2", "CNI-bb"), inside];
  const jump = pod("mine", "10.0.0.2", "CNI-aa").replace("-A ", "-D ");
  const expected = ["*nat", jump, "-F CNI-aa", "-X CNI-aa", "COMMIT", ""].join("\n");
  assert.equal(removalScript(saved(["CNI-aa", "CNI-bb"], rules), "mine"), expected);
});

test("a chain that nothing jumps to any more goes when it is ours", () => {
  const inside = (chain: string, network: string): string =>
    `-A ${chain} ! -d 224.0.0.0/4 -m comment --comment "name: \\"${network}\\" id: \\"1\\"" -j MASQUERADE`;
  const rules = [inside("CNI-aa", "mine"), inside("CNI-bb", "theirs")];
  const expected = ["*nat", "-F CNI-aa", "-X CNI-aa", "COMMIT", ""].join("\n");
  assert.equal(removalScript(saved(["CNI-aa", "CNI-bb"], rules), "mine"), expected);
});

test("the shared chains go with the last host port", () => {
  const rules = [
    ...shared,
    hostPort("mine", 8080, "CNI-DN-aa"),
    "-A CNI-DN-aa -p tcp -j DNAT --to-destination 10.0.0.2:80",
  ];
  const script = removalScript(saved([...sharedChains, "CNI-DN-aa"], rules), "mine") ?? "";
  for (const chain of [...sharedChains, "CNI-DN-aa"]) assert.ok(script.includes(`-F ${chain}\n`), chain);
  assert.equal(script.match(/^-D /gm)?.length, 3);
  assert.ok(script.lastIndexOf("-F ") < script.indexOf("-X "), "no chain goes while another still refers to it");
});

test("the shared chains stay while another network has a host port", () => {
  const rules = [...shared, hostPort("mine", 8080, "CNI-DN-aa"), hostPort("theirs", 9090, "CNI-DN-bb")];
  const script = removalScript(saved([...sharedChains, "CNI-DN-aa", "CNI-DN-bb"], rules), "mine") ?? "";
  assert.match(script, /-D CNI-HOSTPORT-DNAT .*8080/);
  assert.doesNotMatch(script, /9090|-X CNI-HOSTPORT|-X CNI-DN-bb/);
});

test("shared chains that our pods left empty go too", () => {
  assert.match(removalScript(saved(sharedChains, shared), "mine") ?? "", /-X CNI-HOSTPORT-DNAT/);
});
