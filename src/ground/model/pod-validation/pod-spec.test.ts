import { checksPods, labelRule, qualifiedRule, subdomainRule } from "../../../../test/support/pod-validation.ts";

checksPods("pod", [
  { name: "no containers", pod: { containers: [] }, wanted: ["spec.containers: Required value"] },
  {
    name: "choices",
    pod: { restartPolicy: "Sometimes", dnsPolicy: "Cluster", preemptionPolicy: "Maybe" },
    wanted: [
      'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
      'spec.dnsPolicy: Unsupported value: "Cluster": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
      'spec.preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"',
    ],
  },
  {
    name: "names",
    pod: {
      serviceAccountName: "A",
      nodeName: "B",
      hostname: "c.d",
      subdomain: "E",
      priorityClassName: "F",
      runtimeClassName: "",
    },
    wanted: [
      `spec.serviceAccountName: Invalid value: "A": ${subdomainRule}`,
      `spec.nodeName: Invalid value: "B": ${subdomainRule}`,
      'spec.hostname: Invalid value: "c.d": must not contain dots',
      `spec.subdomain: Invalid value: "E": ${labelRule}`,
      `spec.priorityClassName: Invalid value: "F": ${subdomainRule}`,
      `spec.runtimeClassName: Invalid value: "": ${subdomainRule}`,
    ],
  },
  {
    name: "hostname override",
    pod: { hostnameOverride: "a".repeat(65), setHostnameAsFQDN: true, hostNetwork: true },
    wanted: [
      "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
      "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
      "spec.hostnameOverride: Too long: may not be more than 64 bytes",
    ],
  },
  {
    name: "active deadline",
    pod: { activeDeadlineSeconds: 0 },
    wanted: ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
  },
  {
    name: "active deadline, too long",
    pod: { activeDeadlineSeconds: 2 ** 31 },
    wanted: ["spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"],
  },
  {
    name: "DNS policy None",
    pod: { dnsPolicy: "None" },
    wanted: ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
  },
  {
    name: "DNS policy None without servers",
    pod: { dnsPolicy: "None", dnsConfig: { searches: ["a."] } },
    wanted: [
      "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
    ],
  },
  {
    name: "DNS limits",
    pod: {
      dnsConfig: {
        nameservers: ["10.0.0.1", "010.000.0.2", "::1", "fe80::1%eth0", "dns.example"],
        searches: [...Array.from({ length: 32 }, () => "a".repeat(63)), "_b"],
        options: [{ value: "5" }, { name: "ndots" }],
      },
    },
    wanted: [
      'spec.dnsConfig.nameservers: Invalid value: ["10.0.0.1","010.000.0.2","::1","fe80::1%eth0","dns.example"]: must not have more than 3 nameservers',
      'spec.dnsConfig.nameservers[3]: Invalid value: "fe80::1%eth0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'spec.dnsConfig.nameservers[4]: Invalid value: "dns.example": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      /^spec.dnsConfig.searches: Invalid value: .*: must not have more than 32 search paths$/,
      /^spec.dnsConfig.searches: Invalid value: .*: must not have more than 2048 characters \(including spaces\) in the search list$/,
      `spec.dnsConfig.searches[32]: Invalid value: "_b": ${subdomainRule}`,
      "spec.dnsConfig.options[0]: Required value: must not be empty",
    ],
  },
  {
    name: "host aliases",
    pod: { hostAliases: [{ ip: "1.2.3", hostnames: ["ok", "Not_ok"] }] },
    wanted: [
      'spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      `spec.hostAliases[0].hostnames[1]: Invalid value: "Not_ok": ${subdomainRule}`,
    ],
  },
  {
    name: "ports on the host's network",
    pod: { hostNetwork: true },
    container: { ports: [{ containerPort: 80, hostPort: 8080 }] },
    wanted: [
      "spec.containers[0].ports[0].hostPort: Invalid value: 8080: must match `containerPort` when `hostNetwork` is true",
    ],
  },
  {
    name: "readiness gates",
    pod: { readinessGates: [{ conditionType: "" }] },
    wanted: [
      'spec.readinessGates[0].conditionType: Invalid value: "": name part must be non-empty',
      `spec.readinessGates[0].conditionType: Invalid value: "": name part ${qualifiedRule}`,
    ],
  },
  {
    name: "resource claims",
    pod: {
      resourceClaims: [
        { name: "" },
        { name: "a", resourceClaimName: "X" },
        { name: "a", resourceClaimName: "x", resourceClaimTemplateName: "Y" },
        { name: "B", resourceClaimTemplateName: "y" },
      ],
    },
    container: {
      resources: {
        claims: [
          { name: "" },
          { name: "a", request: "r" },
          { name: "a", request: "r" },
          { name: "a" },
          { name: "gone" },
        ],
      },
    },
    wanted: [
      "spec.resourceClaims[0].name: Required value",
      'spec.resourceClaims[0]: Invalid value: {"name":""}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
      `spec.resourceClaims[1].resourceClaimName: Invalid value: "X": ${subdomainRule}`,
      'spec.resourceClaims[2].name: Duplicate value: "a"',
      /^spec.resourceClaims\[2\]: Invalid value: .*: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified$/,
      `spec.resourceClaims[2].resourceClaimTemplateName: Invalid value: "Y": ${subdomainRule}`,
      `spec.resourceClaims[3].name: Invalid value: "B": ${labelRule}`,
      "spec.containers[0].resources.claims[0]: Required value",
      'spec.containers[0].resources.claims[2]: Duplicate value: "a/r"',
      'spec.containers[0].resources.claims[3]: Duplicate value: "a"',
      'spec.containers[0].resources.claims[4]: Not found: "gone": must be one of the names in pod.spec.resourceClaims: B, a',
    ],
  },
  {
    name: "operating system",
    pod: { os: { name: "plan9" } },
    wanted: ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
  },
  { name: "operating system without a name", pod: { os: { name: "" } }, wanted: ["spec.os.name: Required value"] },
  {
    name: "Windows options on Linux",
    pod: { os: { name: "linux" }, securityContext: { windowsOptions: {} } },
    container: { securityContext: { windowsOptions: {} } },
    wanted: [
      "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
      "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
    ],
  },
  {
    name: "Linux options on Windows",
    pod: { os: { name: "windows" }, hostPID: true, hostUsers: true, securityContext: { fsGroup: 1 } },
    container: { securityContext: { privileged: false } },
    wanted: [
      "spec.hostUsers: Forbidden: cannot be set for a windows pod",
      "spec.hostPID: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
    ],
  },
  {
    name: "Windows host processes",
    pod: { securityContext: { windowsOptions: { hostProcess: true } } },
    container: {
      securityContext: { windowsOptions: { hostProcess: false, runAsUserName: "", gmsaCredentialSpec: "" } },
    },
    more: [{ name: "d", image: "i" }],
    wanted: [
      'spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
      'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string',
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true",
      'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
      "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers",
    ],
  },
  {
    name: "overhead",
    pod: { overhead: { cpu: "-1", "example.com/x": "1" } },
    wanted: ['spec.overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
  },
]);
