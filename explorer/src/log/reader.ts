// The reader of qlog files without a page, for tests.
export { Connection } from "./connection";
export { Events } from "./events";
export { readLog, versionNote } from "./records";
