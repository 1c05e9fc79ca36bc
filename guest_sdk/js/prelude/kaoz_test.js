// The same tests by the name that KaozKit gives them.

export * from "agent/test";
