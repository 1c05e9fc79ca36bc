import * as host from "runner:host";
export const log = (...args) => { host.writeLog(1, args.map(String).join(" ")); };
