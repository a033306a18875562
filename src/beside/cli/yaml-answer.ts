import { Document, visit } from "yaml";
import { apiVersion } from "./answer.ts";
import { visible, visibleYaml } from "./visible-text.ts";

/** An answer for programs that read YAML: a document of its own, which may follow others. */
export function yamlAnswer(kind: string, answer: object): string {
  const document = new Document({ apiVersion, kind, ...answer }, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_key, scalar) {
      const { value } = scalar;
      if (typeof value === "string" && visible(value) !== value) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return visibleYaml(document.toString({ lineWidth: 0 }));
}
