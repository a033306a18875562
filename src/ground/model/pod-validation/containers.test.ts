import { checksPods, labelRule, qualifiedRule, subdomainRule } from "../../../../test/support/pod-validation.ts";

const envRule =
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const keyRule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

checksPods("container", [
  {
    name: "name and image",
    container: { name: "", image: "" },
    wanted: ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
  },
  {
    name: "bad name, spaces around the image",
    container: { name: "My_C", image: " i " },
    wanted: [
      `spec.containers[0].name: Invalid value: "My_C": ${labelRule}`,
      'spec.containers[0].image: Invalid value: " i ": must not have leading or trailing whitespace',
    ],
  },
  {
    name: "duplicate name",
    more: [{ name: "c", image: "i" }],
    wanted: ['spec.containers[1].name: Duplicate value: "c"'],
  },
  {
    name: "choices",
    container: { imagePullPolicy: "Often", terminationMessagePolicy: "Log" },
    wanted: [
      'spec.containers[0].terminationMessagePolicy: Unsupported value: "Log": supported values: "File", "FallbackToLogsOnError"',
      'spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"',
    ],
  },
  {
    name: "restart policy and rules of a regular container",
    container: {
      restartPolicy: "Never",
      restartPolicyRules: [
        { action: "Restart", exitCodes: { operator: "In", values: [42] } },
        { action: "RestartAllContainers", exitCodes: { operator: "NotIn", values: [0, 1] } },
      ],
    },
    wanted: [],
  },
  {
    name: "restart rules that make no sense",
    container: {
      restartPolicy: "Sometimes",
      restartPolicyRules: [
        { action: "Terminate", exitCodes: { operator: "Gt", values: Array.from({ length: 256 }, (_, code) => code) } },
        ...Array.from({ length: 20 }, () => ({ action: "Restart" })),
      ].slice(0, 21),
    },
    wanted: [
      'spec.containers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
      "spec.containers[0].restartPolicyRules: Too many: must have at most 20 items",
      'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Terminate": supported values: "Restart", "RestartAllContainers"',
      'spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Gt": supported values: "In", "NotIn"',
      "spec.containers[0].restartPolicyRules[0].exitCodes.values: Too many: must have at most 255 items",
      ...Array.from(
        { length: 20 },
        (_, index) =>
          `spec.containers[0].restartPolicyRules[${index + 1}].exitCodes: Required value: must be specified`,
      ),
    ],
  },
  {
    name: "restart rules without a policy of the container's own",
    container: { restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [1] } }] },
    wanted: [
      "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
    ],
  },
  {
    name: "ports",
    container: {
      ports: [
        { containerPort: 0 },
        { containerPort: 70_000, hostPort: -1, protocol: "ICMP" },
        { containerPort: 1, name: "a-very-long-port-name" },
        { containerPort: 2, name: "80" },
        { containerPort: 3, name: "-a--B" },
        { containerPort: 4, name: "web", hostPort: 8080 },
        { containerPort: 5, name: "web", hostPort: 8080 },
        { containerPort: 6, hostPort: 8080, protocol: "UDP" },
        { containerPort: 7, hostPort: 8080, hostIP: "127.0.0.1" },
      ],
    },
    more: [{ name: "d", image: "i", ports: [{ containerPort: 9, hostPort: 8080 }] }],
    wanted: [
      "@.ports[0].containerPort: Required value",
      "@.ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
      "@.ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
      '@.ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
      '@.ports[2].name: Invalid value: "a-very-long-port-name": must be no more than 15 characters',
      '@.ports[3].name: Invalid value: "80": must contain at least one letter (a-z)',
      '@.ports[4].name: Invalid value: "-a--B": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      '@.ports[4].name: Invalid value: "-a--B": must not contain consecutive hyphens',
      '@.ports[4].name: Invalid value: "-a--B": must not begin or end with a hyphen',
      '@.ports[6].name: Duplicate value: "web"',
      '@.ports[6].hostPort: Duplicate value: "TCP//8080"',
      'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//8080"',
    ],
    at: "spec.containers[0]",
  },
  {
    name: "env names",
    container: {
      env: [{ name: "" }, { name: "1A" }, { name: "A=B" }, { name: ".." }, { name: "..x" }, { name: "OK" }],
    },
    wanted: [
      "@[0].name: Required value",
      `@[1].name: Invalid value: "1A": ${envRule}`,
      `@[2].name: Invalid value: "A=B": ${envRule}`,
      "@[3].name: Invalid value: \"..\": must not be '..'",
      "@[4].name: Invalid value: \"..x\": must not start with '..'",
    ],
    at: "spec.containers[0].env",
  },
  {
    name: "env sources",
    container: {
      env: [
        { name: "A", valueFrom: {} },
        { name: "B", value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        {
          name: "C",
          valueFrom: {
            fieldRef: { fieldPath: "metadata.name" },
            configMapKeyRef: { name: "m", key: "k" },
          },
        },
        { name: "D", valueFrom: { configMapKeyRef: { name: "M", key: "" } } },
        { name: "E", valueFrom: { secretKeyRef: { name: "s", key: "a b" } } },
        { name: "F", valueFrom: { fileKeyRef: { key: "", path: "../x", volumeName: "" } } },
        { name: "G", valueFrom: { fileKeyRef: { key: "K", path: "", volumeName: "gone" } } },
        { name: "H", valueFrom: { fileKeyRef: { key: "K", path: "p", volumeName: "h" } } },
      ],
    },
    pod: { volumes: [{ name: "h", hostPath: { path: "/x" } }] },
    wanted: [
      '@[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
      '@[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
      '@[2].valueFrom: Invalid value: "": may not have more than one field specified at a time',
      `@[3].valueFrom.configMapKeyRef.name: Invalid value: "M": ${subdomainRule}`,
      "@[3].valueFrom.configMapKeyRef.key: Required value",
      `@[4].valueFrom.secretKeyRef.key: Invalid value: "a b": ${keyRule}`,
      "@[5].valueFrom.fileKeyRef.key: Required value",
      "@[5].valueFrom.fileKeyRef.volumeName: Required value",
      "@[5].valueFrom.fileKeyRef.path: Invalid value: \"../x\": must not contain '..'",
      "@[6].valueFrom.fileKeyRef.path: Required value",
      '@[6].valueFrom.fileKeyRef.volumeName: Not found: "gone"',
      '@[7].valueFrom.fileKeyRef.volumeName: Invalid value: "h": referenced volume must be of type emptyDir',
    ],
    at: "spec.containers[0].env",
  },
  {
    name: "downward fields",
    container: {
      env: [
        { name: "A", valueFrom: { fieldRef: { fieldPath: "" } } },
        { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.labels" } } },
        { name: "C", valueFrom: { fieldRef: { fieldPath: "spec.containers" } } },
        { name: "D", valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } },
        { name: "E", valueFrom: { fieldRef: { fieldPath: "metadata.annotations['Up.example/X']" } } },
        { name: "F", valueFrom: { fieldRef: { fieldPath: "metadata.name['x']" } } },
        { name: "G", valueFrom: { fieldRef: { fieldPath: "metadata.name", apiVersion: "v2" } } },
        { name: "H", valueFrom: { fieldRef: { fieldPath: "status.hostIPs" } } },
        { name: "I", valueFrom: { fieldRef: { fieldPath: "what['x']" } } },
      ],
    },
    wanted: [
      "@[0].valueFrom.fieldRef.fieldPath: Required value",
      '@[1].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
      '@[2].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers": error converting fieldPath: field label not supported: spec.containers',
      `@[3].valueFrom.fieldRef.fieldPath: Invalid value: "a b": name part ${qualifiedRule}`,
      "@[5].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['x']\": does not support subscript",
      '@[6].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
      "@[8].valueFrom.fieldRef.fieldPath: Invalid value: \"what['x']\": error converting fieldPath: field label not supported: what['x']",
    ],
    at: "spec.containers[0].env",
  },
  {
    name: "resource fields",
    container: {
      env: [
        { name: "A", valueFrom: { resourceFieldRef: { resource: "" } } },
        { name: "B", valueFrom: { resourceFieldRef: { resource: "limits.gpu" } } },
        { name: "C", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "2" } } },
        { name: "D", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "2Mi" } } },
        { name: "E", valueFrom: { resourceFieldRef: { resource: "requests.ephemeral-storage", divisor: "1m" } } },
        { name: "F", valueFrom: { resourceFieldRef: { resource: "limits.hugepages-2Mi", divisor: "3" } } },
        { name: "G", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1024Ki" } } },
      ],
    },
    wanted: [
      "@[0].valueFrom.resourceFieldRef.resource: Required value",
      '@[1].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
      '@[2].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
      '@[3].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource',
      '@[4].valueFrom.resourceFieldRef.divisor: Invalid value: "requests.ephemeral-storage": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource',
      '@[5].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.hugepages-2Mi": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource',
    ],
    at: "spec.containers[0].env",
  },
  {
    name: "envFrom",
    container: {
      envFrom: [
        {},
        { prefix: "1", configMapRef: { name: "" } },
        { secretRef: { name: "S" } },
        { configMapRef: { name: "m" }, secretRef: { name: "s" } },
      ],
    },
    wanted: [
      '@[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
      `@[1].prefix: Invalid value: "1": ${envRule}`,
      "@[1].configMapRef.name: Required value",
      `@[2].secretRef.name: Invalid value: "S": ${subdomainRule}`,
      '@[3]: Invalid value: "": may not have more than one field specified at a time',
    ],
    at: "spec.containers[0].envFrom",
  },
  {
    name: "mounts",
    pod: { volumes: [{ name: "v" }] },
    container: {
      volumeMounts: [
        { name: "", mountPath: "" },
        { name: "gone", mountPath: "/a" },
        { name: "v", mountPath: "/a", subPath: "/x", subPathExpr: "../y" },
        { name: "v", mountPath: "/b", mountPropagation: "Both" },
        { name: "v", mountPath: "/c", mountPropagation: "Bidirectional" },
        { name: "v", mountPath: "/d", recursiveReadOnly: "Enabled" },
        {
          name: "v",
          mountPath: "/e",
          recursiveReadOnly: "Enabled",
          readOnly: true,
          mountPropagation: "HostToContainer",
        },
        { name: "v", mountPath: "/f", recursiveReadOnly: "Maybe" },
        { name: "v", mountPath: "/g", recursiveReadOnly: "Disabled" },
      ],
    },
    wanted: [
      "@[0].name: Required value",
      '@[0].name: Not found: ""',
      "@[0].mountPath: Required value",
      '@[1].name: Not found: "gone"',
      '@[2].mountPath: Invalid value: "/a": must be unique',
      '@[2].subPath: Invalid value: "/x": must be a relative path',
      '@[2].subPathExpr: Invalid value: "../y": subPathExpr and subPath are mutually exclusive',
      "@[2].subPathExpr: Invalid value: \"../y\": must not contain '..'",
      '@[3].mountPropagation: Unsupported value: "Both": supported values: "Bidirectional", "HostToContainer", "None"',
      "@[4].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
      "@[5].recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
      "@[6].recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified",
      '@[7].recursiveReadOnly: Unsupported value: "Maybe": supported values: "Disabled", "Enabled", "IfPossible"',
    ],
    at: "spec.containers[0].volumeMounts",
  },
  {
    name: "privileged containers may share mounts both ways",
    pod: { volumes: [{ name: "v" }] },
    container: {
      volumeMounts: [{ name: "v", mountPath: "/c", mountPropagation: "Bidirectional" }],
      securityContext: { privileged: true },
    },
    wanted: [],
  },
  {
    name: "block devices",
    pod: {
      volumes: [
        { name: "e", emptyDir: {} },
        { name: "p", persistentVolumeClaim: { claimName: "c" } },
      ],
    },
    container: {
      volumeMounts: [{ name: "p", mountPath: "/m" }],
      volumeDevices: [
        { name: "", devicePath: "" },
        { name: "e", devicePath: "/a/../b" },
        { name: "p", devicePath: "/m" },
        { name: "p", devicePath: "/m" },
      ],
    },
    wanted: [
      'spec.containers[0].volumeMounts[0].name: Invalid value: "p": must not already exist in volumeDevices',
      'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/m": must not already exist as a path in volumeDevices',
      "@[0].name: Required value",
      '@[0].name: Not found: ""',
      "@[0].devicePath: Required value",
      '@[1].name: Invalid value: "e": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      "@[1].devicePath: Invalid value: \"/a/../b\": can not contain backsteps ('..')",
      '@[2].name: Invalid value: "p": must not already exist in volumeMounts',
      '@[2].devicePath: Invalid value: "/m": must not already exist as a path in volumeMounts',
      '@[3].name: Invalid value: "p": must be unique',
      '@[3].devicePath: Invalid value: "/m": must be unique',
      '@[3].name: Invalid value: "p": must not already exist in volumeMounts',
      '@[3].devicePath: Invalid value: "/m": must not already exist as a path in volumeMounts',
    ],
    at: "spec.containers[0].volumeDevices",
  },
  {
    name: "security context",
    container: {
      securityContext: {
        runAsUser: -1,
        runAsGroup: 2 ** 32,
        procMount: "Open",
        allowPrivilegeEscalation: false,
        privileged: true,
        capabilities: { add: ["CAP_SYS_ADMIN"] },
      },
    },
    wanted: [
      "@.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "@.runAsGroup: Invalid value: 4294967296: must be between 0 and 2147483647, inclusive",
      '@.procMount: Unsupported value: "Open": supported values: "Default", "Unmasked"',
      /securityContext: Invalid value: .*: cannot set `allowPrivilegeEscalation` to false and `privileged` to true$/,
      /securityContext: Invalid value: .*: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN$/,
    ],
    at: "spec.containers[0].securityContext",
  },
  {
    name: "unmasked proc needs users of its own",
    container: { securityContext: { procMount: "Unmasked" } },
    wanted: [
      'spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
    ],
  },
  {
    name: "resize policies",
    pod: { restartPolicy: "Never" },
    container: {
      resizePolicy: [
        { resourceName: "cpu", restartPolicy: "NotRequired" },
        { resourceName: "cpu", restartPolicy: "RestartContainer" },
        { resourceName: "disk", restartPolicy: "" },
      ],
    },
    wanted: [
      '@[1]: Duplicate value: "cpu"',
      "@[1].restartPolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is 'Never'",
      '@[2].resourceName: Unsupported value: "disk": supported values: "cpu", "memory"',
      "@[2].restartPolicy: Required value",
      "@[2].restartPolicy: Invalid value: \"\": must be 'NotRequired' when `restartPolicy` is 'Never'",
    ],
    at: "spec.containers[0].resizePolicy",
  },
]);
