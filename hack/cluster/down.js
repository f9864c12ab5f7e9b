// `npm run cluster:down`: ends the cluster and removes all of it, save for what was built into the cache.
import { remove } from "./place.js";
import { alone, Failure } from "./process.js";

const began = performance.now();
try {
  if (process.getuid?.() !== 0) throw new Failure("what root has started only root can end: run this with sudo");
  await alone();
  const found = await remove();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.error(found ? `[cluster] removed in ${seconds} s` : "[cluster] there is none");
} catch (error) {
  console.error(error instanceof Failure ? `[cluster] ${error.message}` : error);
  process.exitCode = 1;
}
