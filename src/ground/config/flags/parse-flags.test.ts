import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "./parse-flags.ts";
import { removedFlags } from "./removed-flags.ts";

const values = (...argv: string[]): Record<string, unknown> => Object.fromEntries(parseFlags(argv).values);
const complaints = (...argv: string[]): string[] => parseFlags(argv).problems.map(({ message }) => message);

for (const [title, argv, expected] of [
  ["value after =", ["--max-pods=5"], { "max-pods": 5 }],
  ["value in the next word", ["--max-pods", "5"], { "max-pods": 5 }],
  ["a value may start with a dash", ["--oom-score-adj", "-5"], { "oom-score-adj": -5 }],
  ["bare boolean", ["--runonce", "--enable-server"], { runonce: true, "enable-server": true }],
  ["boolean with value", ["--enable-server=F"], { "enable-server": false }],
  ["underscores", ["--max_pods=5"], { "max-pods": 5 }],
  ["the last use wins", ["--max-pods=5", "--max-pods=6"], { "max-pods": 6 }],
  ["-v N", ["-v", "3"], { v: 3 }],
  ["-v=N", ["-v=3"], { v: 3 }],
  ["-vN", ["-v3"], { v: 3 }],
  ["--v=N", ["--v=3"], { v: 3 }],
  ["-h", ["-h"], { help: true }],
  ["letters together", ["-hv2"], { help: true, v: 2 }],
  ["lists add up", ["--cluster-dns=a,b", "--cluster-dns=c"], { "cluster-dns": ["a", "b", "c"] }],
  ["quoted list", ['--cluster-dns="a,b",c'], { "cluster-dns": ["a,b", "c"] }],
  ["empty list", ["--enforce-node-allocatable="], { "enforce-node-allocatable": [] }],
  [
    "maps add up",
    ["--kube-reserved=cpu=1,", "--kube-reserved= memory = 1Gi "],
    { "kube-reserved": { cpu: "1", memory: "1Gi" } },
  ],
  ["a map's value may hold =", ["--kube-reserved=cpu=a=b"], { "kube-reserved": { cpu: "a=b" } }],
  [
    "no splitting at commas",
    ["--cpu-manager-policy-options=a=b,c=d"],
    { "cpu-manager-policy-options": { a: "b,c=d" } },
  ],
  [
    "headers of one name",
    ["--manifest-url-header=a:1,b:2,a:3"],
    { "manifest-url-header": { a: ["1", "3"], b: ["2"] } },
  ],
  [
    "the last taints replace",
    ["--register-with-taints=a:NoSchedule", "--register-with-taints=b:NoSchedule"],
    { "register-with-taints": [{ key: "b", value: "", effect: "NoSchedule" }] },
  ],
  ["an empty address is ignored", ["--address=1.2.3.4", "--address="], { address: "1.2.3.4" }],
  ["leading zeros of an address", ["--address=010.0.0.1"], { address: "010.0.0.1" }],
  ["octal", ["--max-pods=010"], { "max-pods": 8 }],
  ["digits grouped", ["--max-pods=1_000"], { "max-pods": 1000 }],
  [
    "keys every object has",
    ["--node-labels=constructor=a,__proto__=b"],
    {
      "node-labels": Object.fromEntries([
        ["constructor", "a"],
        ["__proto__", "b"],
      ]),
    },
  ],
] as const) {
  test(title, () => assert.deepEqual(values(...argv), expected));
}

test("words that are no flags", () => {
  assert.deepEqual(parseFlags(["a", "--runonce", "b", "-", "--", "--max-pods", "c"]).positional, [
    "a",
    "b",
    "-",
    "--max-pods",
    "c",
  ]);
});

for (const [argv, message] of [
  [["--max-pods"], "flag needs an argument: --max-pods"],
  [["-v"], "flag needs an argument: 'v' in -v"],
  [["-x"], "unknown shorthand flag: 'x' in -x"],
  [["---x"], "bad flag syntax: ---x"],
  [["--=x"], "bad flag syntax: --=x"],
  [["--max-pod=1"], "unknown flag: --max-pod (did you mean --max-pods?)"],
  [["--max_pod=1"], "unknown flag: --max_pod (did you mean --max-pods?)"],
  [["--entirely-different"], "unknown flag: --entirely-different"],
  [["--max-pods=x"], 'invalid argument "x" for "--max-pods" flag: strconv.ParseInt: parsing "x": invalid syntax'],
  [
    ["--max-pods=99999999999"],
    'invalid argument "99999999999" for "--max-pods" flag: strconv.ParseInt: parsing "99999999999": value out of range',
  ],
  [["--max-open-files=9223372036854775807"], "the largest number supported is 9007199254740991"],
  [
    ["--runonce=maybe"],
    'invalid argument "maybe" for "--runonce" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  ],
  [["-v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax'],
  [["--sync-frequency=5"], 'invalid argument "5" for "--sync-frequency" flag: time: missing unit in duration "5"'],
  [["--sync-frequency=5d"], 'time: unknown unit "d" in duration "5d"'],
  [["--sync-frequency=x"], 'time: invalid duration "x"'],
  [["--kube-reserved=cpu"], "malformed pair, expect string=string"],
  [["--eviction-hard=memory.available=1Gi"], "malformed pair, expect string<string"],
  [["--manifest-url-header=a"], "malformed pair, expect string:string"],
  [["--feature-gates=A"], "malformed pair, expect string=bool"],
  [["--feature-gates=A=x"], 'invalid value of A: x, err: strconv.ParseBool: parsing "x": invalid syntax'],
  [["--address=nowhere"], '"nowhere" is not a valid IP address'],
  [["--address=fe80::1%eth0"], "is not a valid IP address"],
  [["--register-with-taints=a=b"], "invalid taint spec: a=b"],
  [["--register-with-taints=a=b:Never"], "invalid taint effect: Never, unsupported taint effect"],
  [["--register-with-taints=a=b=c:NoSchedule"], "invalid taint spec: a=b=c:NoSchedule"],
  [["--register-with-taints=a:NoSchedule,a=x:NoSchedule"], "duplicated taints with the same key and effect"],
  [["--register-with-taints=:NoSchedule"], "name part must be non-empty"],
  [["--reserved-memory=memory=1Gi"], "expected numaNodeID:type=quantity"],
  [["--reserved-memory=x:memory=1Gi"], "failed to convert the NUMA node ID"],
  [["--reserved-memory=0:cpu=1"], 'memory type conversion error, unknown type: "cpu"'],
  [["--reserved-memory=0:memory"], "expected type=quantity, got memory"],
  [["--reserved-memory=0:memory=much"], "failed to parse the quantity"],
  [["--vmodule=a"], '"a" does not have the pattern=N format'],
  [["--vmodule=a=x"], 'parsing verbosity in "a=x"'],
  [['--cluster-dns=a"b'], 'bare " in non-quoted field'],
  [['--cluster-dns="a'], "a quoted field must end"],
  [["--version=v9"], 'could not parse "v9" as version'],
  [["--version=v1.33.1"], 'version "v1.33.1" must match major/minor/patch of default version "v1.34.11"'],
] as const) {
  test(`refused: ${argv.join(" ")}`, () => {
    const found = complaints(...argv);
    assert.equal(found.length, 1);
    assert.ok(found[0]?.includes(message), found[0]);
  });
}

test("every mistake of the command line is reported, and a value is not taken for a command", () => {
  const parsed = parseFlags(["--container-runtime", "docker", "--max-pods=x", "--no-such", "--port=y"]);
  assert.equal(parsed.problems.length, 4);
  assert.deepEqual(parsed.positional, []);
});

for (const [name, advice] of Object.entries(removedFlags)) {
  test(`--${name} of an older kubelet is refused with what to do`, () => {
    assert.deepEqual(complaints(`--${name}=1`), [`unknown flag: --${name}: ${advice}`]);
  });
}

test("a deprecated flag is told of once, however often it is given", () => {
  assert.equal(parseFlags(["--max-pods=1", "--max-pods=2"]).deprecations.length, 1);
});
