import * as host from "runner:host";
import { log } from "runner:console";
import { setTimeout, clearTimeout, setInterval } from "runner:timers";
export const restored = () => host.restored();
export const snapshot = (reason) => host.snapshot(reason) > 0;
export const lastSnapshot = () => null;
Object.assign(globalThis, { console: { log }, setTimeout, clearTimeout, setInterval });
