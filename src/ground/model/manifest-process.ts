// Reads one large YAML text in a process of its own; see manifest.ts.
import { once } from "node:events";
import process from "node:process";
import { messageOf } from "../base/index.ts";
import { decodeText, plainValue } from "./manifest-decode.ts";
import type { ManifestAnswer, ManifestQuestion } from "./manifest-messages.ts";

const [question] = await once(process, "message");
process.send?.(answerTo(question as ManifestQuestion));

function answerTo(input: ManifestQuestion): ManifestAnswer {
  try {
    if (input.read === "plain") return { result: plainValue(input.text) };
    const { object, problems } = decodeText(input.text, input.kinds);
    return { result: { object, problems } };
  } catch (error) {
    return { failure: messageOf(error) };
  }
}
