import { type Check, failed, fileSource, type Judgement, notApplicable, passed, shellWord, unknown } from "../check.ts";
import { type Facts, known, settingText } from "../facts.ts";
import type { FileFact } from "../gather/files.ts";

type Look = (facts: Facts) => Judgement;

const secrets = "who can read it can act as this node, and read every secret of its pods";
const orders = "who can change it decides how the agent starts, as root";
const trust = "who can change it decides whose certificates the node believes";

export const cisFileChecks: readonly Check[] = [
  row("4.1.1", "automated", "The agent's service file is 600 or tighter", orders, ofUnit(modeAtMost(0o600))),
  row("4.1.2", "automated", "The agent's service file belongs to root:root", orders, ofUnit(ownedByRoot)),
  row("4.1.3", "manual", "kube-proxy's kubeconfig is 600 or tighter", secrets, ofKubeProxy(modeAtMost(0o600))),
  row("4.1.4", "manual", "kube-proxy's kubeconfig belongs to root:root", secrets, ofKubeProxy(ownedByRoot)),
  row("4.1.5", "automated", "The kubeconfig and its keys are 600 or tighter", secrets, ofKubeconfig(modeAtMost(0o600))),
  row("4.1.6", "automated", "The kubeconfig and its keys belong to root:root", secrets, ofKubeconfig(ownedByRoot)),
  row("4.1.7", "manual", "The file of client authorities is 644 or tighter", trust, ofClientCa(modeAtMost(0o644))),
  row("4.1.8", "manual", "The file of client authorities belongs to root:root", trust, ofClientCa(ownedByRoot)),
  row("4.1.9", "automated", "Configuration file and drop-ins are 600 or tighter", orders, ofConfig(modeAtMost(0o600))),
  row("4.1.10", "automated", "Configuration file and drop-ins belong to root:root", orders, ofConfig(ownedByRoot)),
];

function row(id: string, benchmark: "automated" | "manual", title: string, why: string, look: Look): Check {
  return { id, title, why, benchmark, look };
}

/** Judges files that are there; those that are not are no risk. */
type Judge = (files: readonly FileFact[]) => Judgement;

interface Rule {
  readonly isKept: (file: PresentFile) => boolean;
  readonly shown: (file: PresentFile) => string;
  readonly fix: (file: PresentFile) => string;
}

type PresentFile = Extract<FileFact, { readonly state: "there" }>;

function modeAtMost(most: 0o600 | 0o644): Judge {
  return judging({
    isKept: ({ mode }) => (mode & 0o777 & ~most) === 0,
    shown: ({ path, mode }) => `${path} is ${octal(mode)}`,
    fix: ({ path }) => mendFile(path, `chmod ${octal(most)}`),
  });
}

function ownedByRoot(files: readonly FileFact[]): Judgement {
  const judge = judging({
    isKept: ({ uid, gid }) => uid === 0 && gid === 0,
    shown: ({ path, uid, gid }) => `${path} belongs to ${uid}:${gid}`,
    fix: ({ path }) => mendFile(path, "chown root:root"),
  });
  return judge(files);
}

function judging({ isKept, shown, fix }: Rule): Judge {
  return (files) => {
    const there = files.filter((file) => file.state === "there");
    const wrong = there.filter((file) => !isKept(file));
    const [first] = wrong;
    if (first !== undefined) {
      return failed(wrong.map(shown).join(", "), wrong.map(fix).join(" && "), fileSource(first.path));
    }
    for (const file of files) {
      if (file.state === "unreadable") return unknown(`${file.path}: ${file.problem}`, "run the doctor as root");
    }
    const [any] = there;
    if (any === undefined) return notApplicable(`not there: ${files.map(({ path }) => path).join(", ")}`);
    return passed(there.map(shown).join(", "), fileSource(any.path));
  };
}

/** What belongs to a package or an image that can't be written is replaced by a copy in /etc, which systemd prefers. */
function mendFile(path: string, command: string): string {
  const below = /^(?:\/usr(?:\/local)?)?\/lib\/systemd\/system\/(.+)$/.exec(path)?.[1];
  if (below === undefined) return `${command} ${shellWord(path)}`;
  const copy = `/etc/systemd/system/${below}`;
  return `install -D -m 600 -o root -g root ${shellWord(path)} ${shellWord(copy)} && systemctl daemon-reload`;
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}

function ofUnit(judge: Judge): Look {
  return (facts) => {
    const unit = known(facts.unit);
    switch (unit.kind) {
      case "no systemd":
        return notApplicable("systemd does not run this machine");
      case "no unit":
        return notApplicable(`no unit runs the agent; looked for ${unit.looked.join(" and ")}`);
      case "unit":
        return judge(unit.files);
    }
  };
}

function ofKubeProxy(judge: Judge): Look {
  return (facts) => {
    const proxy = known(facts.kubeProxy);
    if (proxy === undefined) return notApplicable("no kube-proxy runs on this machine");
    const { kubeconfig, inContainer, pid } = proxy;
    if (kubeconfig === undefined) return notApplicable(`kube-proxy (pid ${pid}) is started without a kubeconfig`);
    if (inContainer && kubeconfig.holdsSecrets === false) {
      return notApplicable(`kube-proxy (pid ${pid}) runs in a pod, and its kubeconfig holds no secret`);
    }
    return judge([kubeconfig.file]);
  };
}

function ofKubeconfig(judge: Judge): Look {
  return (facts) => {
    if (settingText(known(facts.config), "--kubeconfig") === "")
      return notApplicable("stand-alone: there is no kubeconfig");
    return judge(known(facts.configFiles).kubeconfig);
  };
}

function ofClientCa(judge: Judge): Look {
  return (facts) => {
    const { clientCa } = known(facts.configFiles);
    return clientCa === undefined
      ? notApplicable("no file of client authorities is set, see 4.2.3")
      : judge([clientCa]);
  };
}

function ofConfig(judge: Judge): Look {
  return (facts) => {
    const { config } = known(facts.configFiles);
    return config.length === 0
      ? notApplicable("there is no configuration file: everything is said by flags")
      : judge(config);
  };
}
