// Agents that start others: not in this release, and an agent can ask for it by this module.

import { HostError } from "runner:errors";

export function available() {
  return false;
}

function refuse() {
  throw new HostError("this host starts no other agents", "unsupported");
}

export class Thread {
  constructor() {
    refuse();
  }
}

export class Service {
  constructor() {
    refuse();
  }
}
