"""
From an agent's source to its module: C through `zig cc`, WebAssembly text through the engine's assembler.

A compiler runs as a process of its own, with a clean environment and bounded time and output. It is not a
sandbox: whoever builds a stranger's C source trusts the compiler with it, as with any `make`. What comes
out is as untrusted as any other module.

Rejected: `zig` as a build system (its package format changes with every release), and one object file per
source with a cache of our own (a whole agent compiles in a quarter of a second).
"""
