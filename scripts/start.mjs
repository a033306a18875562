// `npm start`: prepares the machine and runs the example pods; what follows `--` goes to `nodelet up`.
import { runNodelet } from "./run-nodelet.mjs";
import { setupToRun } from "./setup.mjs";

setupToRun();
runNodelet(["up", ...process.argv.slice(2)]);
