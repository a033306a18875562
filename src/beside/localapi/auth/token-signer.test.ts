import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { test } from "node:test";
import { TokenSigner } from "./token-signer.ts";

const lifetime = { fromMs: 1_000_000, toMs: 2_000_000 };
const claims = {
  namespace: "default",
  serviceAccount: { name: "web", uid: "1" },
  pod: { name: "web-0", uid: "2" },
  audiences: ["api"],
};

test("a token says what was put into it, within its time", () => {
  const signer = new TokenSigner(TokenSigner.newKey(), "https://issuer");
  const token = signer.issue(claims, lifetime);
  const { tokenId, ...read } = signer.read(token, 1_500_000) ?? { tokenId: "" };
  assert.deepEqual(read, claims);
  assert.match(tokenId, /^[0-9a-f-]{36}$/);
  assert.equal(signer.read(token, 939_999), undefined);
  // A clock that was set back a little after the token was issued.
  assert.ok(signer.read(token, 941_000));
  assert.equal(signer.read(token, 2_000_000), undefined);
});

test("tokens of others, altered ones and nonsense are not believed", () => {
  const key = TokenSigner.newKey();
  const signer = new TokenSigner(key, "https://issuer");
  const token = signer.issue(claims, lifetime);
  const [header = "", body = "", signature = ""] = token.split(".");
  const altered = Buffer.from(Buffer.from(body, "base64url").toString().replace("web-0", "web-1")).toString(
    "base64url",
  );
  assert.equal(signer.read(`${header}.${altered}.${signature}`, 1_500_000), undefined);
  assert.equal(new TokenSigner(TokenSigner.newKey(), "https://issuer").read(token, 1_500_000), undefined);
  assert.equal(new TokenSigner(key, "https://other").read(token, 1_500_000), undefined);
  for (const text of ["", "a.b.c", "a.b", "....", token.slice(0, -4)])
    assert.equal(signer.read(text, 1_500_000), undefined, text);
});

test("whoever has the published key can check a token", () => {
  const signer = new TokenSigner(TokenSigner.newKey(), "https://issuer");
  const [header = "", body = "", signature = ""] = signer.issue(claims, lifetime).split(".");
  const [published] = signer.keySet()["keys"] as { kid: string; kty: string }[];
  assert.ok(published);
  assert.equal(JSON.parse(Buffer.from(header, "base64url").toString()).kid, published.kid);
  const key = createPublicKey({ key: { ...published }, format: "jwk" });
  const isGenuine = verify(
    "sha256",
    Buffer.from(`${header}.${body}`),
    { key, dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  assert.ok(isGenuine);
});
