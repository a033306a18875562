import { NODELET_VERSION } from "../../ground/config/index.ts";
import { defineCommand } from "./define-command.ts";
import { manPage } from "./man-page.ts";
import { shownCommands } from "./table/commands.ts";
import { manDescription } from "./table/nodelet-commands.ts";

export const manCommand = defineCommand(manDescription, async (_call, io) => {
  io.stdout.write(manPage(shownCommands, NODELET_VERSION));
  return 0;
});
