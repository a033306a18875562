import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority of its own, made by openssl, for tests that need real TLS. */
export class TestAuthority {
  readonly certificate: string;
  readonly #directory: string;

  constructor() {
    this.#directory = mkdtempSync(join(tmpdir(), "nodelet-authority-"));
    this.#openssl([
      "req",
      "-x509",
      ...newKey,
      "-days",
      "2",
      "-subj",
      "/CN=test-authority",
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
    ]);
    this.certificate = this.#read("ca.pem");
  }

  /** For a server at 127.0.0.1 and localhost, or at the names given. */
  server(names: readonly string[] = ["IP:127.0.0.1", "DNS:localhost"]): KeyPair {
    return this.#issue("/CN=test-server", `subjectAltName=${names.join(",")}\nextendedKeyUsage=serverAuth\n`);
  }

  client(commonName: string, organization = "system:nodes"): KeyPair {
    return this.#issue(`/O=${organization}/CN=${commonName}`, "extendedKeyUsage=clientAuth\n");
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #issue(subject: string, extensions: string): KeyPair {
    writeFileSync(join(this.#directory, "leaf.ext"), extensions);
    this.#openssl(["req", "-new", ...newKey, "-subj", subject, "-keyout", "leaf.key", "-out", "leaf.csr"]);
    const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "leaf.ext"];
    this.#openssl(["x509", "-req", "-in", "leaf.csr", ...signing, "-out", "leaf.pem"]);
    return { certificate: this.#read("leaf.pem"), key: this.#read("leaf.key") };
  }

  #openssl(args: readonly string[]): void {
    execFileSync("openssl", args, { cwd: this.#directory, stdio: "pipe" });
  }

  #read(name: string): string {
    return readFileSync(join(this.#directory, name), "utf8");
  }
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
