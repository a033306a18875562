// Images: names, credentials, pulling with fairness and back-off, and removing what nobody uses.
export { defaultPullPolicy, ImageNameError, type PullPolicy, parseImage, withDefaultTag } from "./reference.ts";
