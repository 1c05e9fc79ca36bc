"""
Reading and rewriting core WebAssembly modules, as far as admission needs it.

The engine validates a module before anything here is believed. What the engine doesn't tell through its
interface is read here: hidden globals, what a function does to tables, where the start function is.

Tried and rejected: a general library for modules, which would be larger than the kernel and would have to be
trusted whole; and rebuilding a module from a parsed tree, which changes bytes that nobody asked to change.
"""
