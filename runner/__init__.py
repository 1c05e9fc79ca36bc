"""
Runs agents that nobody has reason to trust: WebAssembly modules whose imports are the whole of their power.

Nothing is imported here, so that `runner --help` pays for nothing.
"""
