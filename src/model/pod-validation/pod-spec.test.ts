import { checksPods, labelRule, qualifiedRule, subdomainRule } from "../../../test/support/pod-validation.ts";

checksPods("metadata", [
  { name: "all is well", pod: {}, wanted: [] },
  {
    name: "no name, no namespace",
    metadata: { name: "", namespace: "" },
    wanted: ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"],
  },
  {
    name: "bad names",
    metadata: { name: "Web_1", namespace: "a.b", generateName: "X-" },
    wanted: [
      `metadata.generateName: Invalid value: "X-": ${subdomainRule}`,
      `metadata.name: Invalid value: "Web_1": ${subdomainRule}`,
      'metadata.namespace: Invalid value: "a.b": must not contain dots',
    ],
  },
  {
    name: "long name",
    metadata: { name: "a".repeat(254) },
    wanted: [`metadata.name: Invalid value: "${"a".repeat(254)}": must be no more than 253 characters`],
  },
  {
    name: "labels",
    metadata: { labels: { "-a": "x", "b/c/d": "x", "/e": "x", "f/": "x", good: "no spaces" } },
    wanted: [
      `metadata.labels: Invalid value: "-a": name part ${qualifiedRule}`,
      `metadata.labels: Invalid value: "b/c/d": a qualified name ${qualifiedRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
      'metadata.labels: Invalid value: "/e": prefix part must be non-empty',
      'metadata.labels: Invalid value: "f/": name part must be non-empty',
      `metadata.labels: Invalid value: "f/": name part ${qualifiedRule}`,
      "metadata.labels[good]: Invalid value: \"no spaces\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
  {
    name: "annotations",
    metadata: { annotations: { "UPPER.example/is-fine": "x", "!": "x", big: "x".repeat(256 * 1024) } },
    wanted: [
      `metadata.annotations: Invalid value: "!": name part ${qualifiedRule}`,
      "metadata.annotations: Too long: may not be more than 262144 bytes",
    ],
  },
  {
    name: "annotations that mean something",
    metadata: {
      annotations: {
        "kubernetes.io/config.mirror": "m",
        "controller.kubernetes.io/pod-deletion-cost": "+1",
        "seccomp.security.alpha.kubernetes.io/pod": "strange",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/../x",
        "container.apparmor.security.beta.kubernetes.io/c": "strange",
        "container.apparmor.security.beta.kubernetes.io/other": "runtime/default",
      },
    },
    pod: { nodeName: "" },
    wanted: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "m": must set spec.nodeName if mirror pod annotation is set',
      'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer',
      'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: Invalid value: "strange": must be a valid seccomp profile',
      "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: Invalid value: \"../x\": must not contain '..'",
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "strange": invalid AppArmor profile name: "strange"',
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]: Invalid value: "other": container not found',
    ],
  },
  {
    name: "annotations against fields",
    metadata: {
      annotations: {
        "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/a",
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
      },
    },
    pod: { securityContext: { seccompProfile: { type: "Unconfined" }, appArmorProfile: { type: "Unconfined" } } },
    container: { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "b" } } },
    wanted: [
      "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
      "spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match",
      "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match",
    ],
  },
  {
    name: "owners and finalizers",
    metadata: {
      generation: -1,
      finalizers: ["orphan", "foregroundDeletion", "a b"],
      ownerReferences: [
        { apiVersion: "", kind: "", name: "", uid: "" },
        { apiVersion: "v1", kind: "Event", name: "e", uid: "u", controller: true },
        { apiVersion: "v1", kind: "Node", name: "n", uid: "u", controller: true },
      ],
    },
    wanted: [
      "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
      'metadata.ownerReferences[0].apiVersion: Invalid value: "": version must not be empty',
      'metadata.ownerReferences[0].kind: Invalid value: "": must not be empty',
      'metadata.ownerReferences[0].name: Invalid value: "": must not be empty',
      'metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
      'metadata.ownerReferences[1]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true}: /v1, Kind=Event is disallowed from being an owner',
      /^metadata.ownerReferences: Invalid value: .*: Only one reference can have Controller set to true. Found "true" in references for Event\/e and Node\/n$/,
      `metadata.finalizers: Invalid value: "a b": name part ${qualifiedRule}`,
      'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion","a b"]: finalizer orphan and foregroundDeletion cannot be both set',
    ],
  },
]);

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

checksPods("scheduling", [
  {
    name: "tolerations",
    pod: {
      tolerations: [
        { operator: "Exists" },
        { key: "a b", operator: "Exists", value: "x" },
        { operator: "Equal" },
        { key: "k", operator: "Lt", effect: "Never" },
        { key: "k", value: "no spaces", effect: "NoSchedule", tolerationSeconds: 1 },
      ],
    },
    wanted: [
      `spec.tolerations[1].key: Invalid value: "a b": name part ${qualifiedRule}`,
      "spec.tolerations[1].value: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
      'spec.tolerations[2].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
      'spec.tolerations[3].operator: Unsupported value: "Lt": supported values: "Equal", "Exists"',
      'spec.tolerations[3].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      "spec.tolerations[4].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      /^spec.tolerations\[4\].value: Invalid value: "no spaces": a valid label must be/,
    ],
  },
  {
    name: "node selector",
    pod: { nodeSelector: { "a b": "c d" } },
    wanted: [
      `spec.nodeSelector: Invalid value: "a b": name part ${qualifiedRule}`,
      /^spec.nodeSelector\[a b\]: Invalid value: "c d": a valid label must be/,
    ],
  },
  {
    name: "node affinity without terms",
    pod: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    wanted: [
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
    ],
  },
  {
    name: "node affinity",
    pod: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "k", operator: "In" },
                  { key: "k", operator: "Exists", values: ["v"] },
                  { key: "k", operator: "Gt", values: ["1", "2"] },
                  { key: "k", operator: "Near" },
                  { key: "", operator: "Exists" },
                  { key: "k", operator: "In", values: ["a b"] },
                ],
                matchFields: [
                  { key: "metadata.name", operator: "In", values: ["a", "B"] },
                  { key: "metadata.uid", operator: "Exists" },
                ],
              },
            ],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 0, preference: { matchExpressions: [{ key: "k", operator: "In", values: ["a b"] }] } },
            { weight: 101, preference: {} },
          ],
        },
      },
    },
    wanted: [
      "@.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "@.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      "@.matchExpressions[2].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
      '@.matchExpressions[3].operator: Invalid value: "Near": not a valid selector operator',
      '@.matchExpressions[4].key: Invalid value: "": name part must be non-empty',
      `@.matchExpressions[4].key: Invalid value: "": name part ${qualifiedRule}`,
      /matchExpressions\[5\].values\[0\]: Invalid value: "a b": a valid label must be/,
      "@.matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      `@.matchFields[0].values[1]: Invalid value: "B": ${subdomainRule}`,
      '@.matchFields[1].operator: Invalid value: "Exists": not a valid selector operator',
      '@.matchFields[1].key: Invalid value: "metadata.uid": not a valid field selector key',
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight: Invalid value: 101: must be in the range 1-100",
    ],
    at: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
  },
  {
    name: "pod affinity",
    pod: {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "", namespaces: ["A"], matchLabelKeys: ["a"] },
            {
              topologyKey: "a b",
              labelSelector: { matchExpressions: [{ key: "k", operator: "Is" }] },
              matchLabelKeys: ["x"],
              mismatchLabelKeys: ["x", "-"],
            },
          ],
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 200, podAffinityTerm: { topologyKey: "k" } }],
        },
      },
    },
    wanted: [
      `@[0].namespaces: Invalid value: "A": ${labelRule}`,
      "@[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
      "@[0].topologyKey: Required value: can not be empty",
      '@[1].labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
      `@[1].mismatchLabelKeys[1]: Invalid value: "-": name part ${qualifiedRule}`,
      '@[1].matchLabelKeys[0]: Invalid value: "x": exists in both matchLabelKeys and mismatchLabelKeys',
      `@[1].topologyKey: Invalid value: "a b": name part ${qualifiedRule}`,
      "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 200: must be in the range 1-100",
    ],
    at: "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
  },
  {
    name: "topology spread",
    pod: {
      topologySpreadConstraints: [
        { maxSkew: 0, topologyKey: "", whenUnsatisfiable: "Wait", minDomains: 0, matchLabelKeys: ["a"] },
        {
          maxSkew: 1,
          topologyKey: "zone",
          whenUnsatisfiable: "DoNotSchedule",
          nodeAffinityPolicy: "x",
          nodeTaintsPolicy: "y",
        },
        {
          maxSkew: 1,
          topologyKey: "zone",
          whenUnsatisfiable: "DoNotSchedule",
          labelSelector: {
            matchLabels: { a: "b" },
            matchExpressions: [
              { key: "c", operator: "In" },
              { key: "d", operator: "Exists", values: ["x"] },
            ],
          },
          matchLabelKeys: ["a", "c"],
        },
      ],
    },
    wanted: [
      "@[0].maxSkew: Invalid value: 0: must be greater than zero",
      "@[0].topologyKey: Required value: can not be empty",
      '@[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"',
      "@[0].minDomains: Invalid value: 0: must be greater than zero",
      "@[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Wait",
      "@[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
      '@[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
      '@[1].nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
      '@[1].nodeTaintsPolicy: Unsupported value: "y": supported values: "Honor", "Ignore"',
      '@[2].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector',
      '@[2].matchLabelKeys[1]: Invalid value: "c": exists in both matchLabelKeys and labelSelector',
      "@[2].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "@[2].labelSelector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ],
    at: "spec.topologySpreadConstraints",
  },
  {
    name: "scheduling gates",
    pod: { nodeName: "n", schedulingGates: [{ name: "a" }, { name: "a" }, { name: "-" }] },
    wanted: [
      'spec.schedulingGates[1]: Duplicate value: "a"',
      `spec.schedulingGates[2]: Invalid value: "-": name part ${qualifiedRule}`,
      "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ],
  },
]);

checksPods("pod security", [
  {
    name: "ids",
    pod: {
      securityContext: { fsGroup: -1, runAsUser: 2 ** 31, runAsGroup: -2, supplementalGroups: [1, -3] },
    },
    wanted: [
      "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.runAsUser: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.runAsGroup: Invalid value: -2: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.supplementalGroups[1]: Invalid value: -3: must be between 0 and 2147483647, inclusive",
    ],
  },
  {
    name: "choices",
    pod: {
      securityContext: { fsGroupChangePolicy: "x", supplementalGroupsPolicy: "y", seLinuxChangePolicy: "z" },
    },
    wanted: [
      'spec.securityContext.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"',
      'spec.securityContext.supplementalGroupsPolicy: Unsupported value: "y": supported values: "Merge", "Strict"',
      'spec.securityContext.seLinuxChangePolicy: Unsupported value: "z": supported values: "MountOption", "Recursive"',
    ],
  },
  {
    name: "process namespaces",
    pod: { shareProcessNamespace: true, hostPID: true },
    wanted: [
      "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
    ],
  },
  {
    name: "sysctls",
    pod: {
      hostNetwork: true,
      hostIPC: true,
      securityContext: {
        sysctls: [
          { name: "", value: "" },
          { name: "Bad!", value: "" },
          { name: "net.ipv4.x", value: "1" },
          { name: "kernel/shmmax", value: "1" },
          { name: "vm.x", value: "1" },
          { name: "vm.x", value: "1" },
        ],
      },
    },
    wanted: [
      "@[0].name: Required value",
      '@[1].name: Invalid value: "Bad!": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
      "@[2].name: Invalid value: \"net.ipv4.x\": may not be specified when 'hostNetwork' is true",
      "@[3].name: Invalid value: \"kernel/shmmax\": may not be specified when 'hostIPC' is true",
      '@[5].name: Duplicate value: "vm.x"',
    ],
    at: "spec.securityContext.sysctls",
  },
  {
    name: "seccomp and AppArmor",
    pod: { securityContext: { seccompProfile: { type: "" }, appArmorProfile: { type: "" } } },
    wanted: [
      "spec.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set",
      "spec.securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set",
    ],
  },
  {
    name: "seccomp and AppArmor on the host",
    pod: { securityContext: { seccompProfile: { type: "Localhost" }, appArmorProfile: { type: "Localhost" } } },
    container: {
      securityContext: {
        seccompProfile: { type: "Localhost", localhostProfile: "/a/../b" },
        appArmorProfile: { type: "Localhost", localhostProfile: ` ${"a".repeat(4095)}` },
      },
    },
    wanted: [
      'spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: "/a/../b": must be a relative path',
      "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: \"/a/../b\": must not contain '..'",
      /^spec.containers\[0\].securityContext.appArmorProfile.localhostProfile: Invalid value: " a+"\.\.\.: must not be padded with whitespace$/,
      "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes",
      "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
      "spec.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost",
    ],
  },
  {
    name: "seccomp and AppArmor of an unknown type, and a profile that is not used",
    pod: {
      securityContext: {
        seccompProfile: { type: "Docker" },
        appArmorProfile: { type: "RuntimeDefault", localhostProfile: "x" },
      },
    },
    container: {
      securityContext: {
        seccompProfile: { type: "Unconfined", localhostProfile: "x" },
        appArmorProfile: { type: "None" },
      },
    },
    wanted: [
      'spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: "x": can only be set when seccomp type is Localhost',
      'spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: "None": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
      'spec.securityContext.seccompProfile.type: Unsupported value: "Docker": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
      'spec.securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost',
    ],
  },
  {
    name: "users of its own",
    pod: {
      hostUsers: false,
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }],
    },
    container: { volumeDevices: [{ name: "v", devicePath: "/dev/x" }], securityContext: { procMount: "Unmasked" } },
    wanted: [
      "spec.hostNetwork: Forbidden: when `hostUsers` is false",
      "spec.hostPID: Forbidden: when `hostUsers` is false",
      "spec.hostIPC: Forbidden: when `hostUsers` is false",
      "spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false",
    ],
  },
]);
