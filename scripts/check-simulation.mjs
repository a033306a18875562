// Whether the simulation can still be built: a module of Node's that the agent begins to use may need a stand-in, and code
// that a planted fault takes the place of may read otherwise by now.
import { plantedFaults } from "../test/simulation/planted-faults.mjs";
import { buildSimulation } from "./build-simulation.mjs";

await buildSimulation(
  undefined,
  Object.fromEntries(Object.entries(plantedFaults).map(([name, { patches }]) => [name, patches])),
);
