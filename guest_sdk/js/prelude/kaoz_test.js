// The same by the name that KaozKit gives it.

export * from "runner:testing";
