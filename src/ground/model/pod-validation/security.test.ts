import { checksPods } from "../../../../test/support/pod-validation.ts";

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
