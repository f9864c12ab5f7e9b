// `npm run release`: everything of a version in one folder, with checksums. See main.ts.
import { runWithProjectNode } from "../projectNode.js";

runWithProjectNode(new URL("main.ts", import.meta.url));
