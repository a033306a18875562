import { ProblemList } from "../../../ground/model/index.ts";
import { stringAt } from "../json.ts";
import type { Strategy } from "../rest/world.ts";

/** An event stands in the namespace of what it is about; those about the cluster stand in `default`. */
export const eventStrategy: Strategy = {
  validateCreate(event) {
    const problems = new ProblemList();
    const about = stringAt(event, "involvedObject", "namespace");
    const { namespace = "" } = event.metadata;
    const isRight = about === "" ? ["default", "kube-system"].includes(namespace) : about === namespace;
    if (!isRight) problems.invalid("involvedObject.namespace", about, "does not match event.namespace");
    return problems.problems;
  },
};
