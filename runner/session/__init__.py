"""
The host's side of one instance, from open to close: it feeds the machine and does what the guest asks for.

Everything that touches the world is here or below in `capabilities`; the machine only computes. Slices run
on the threads of a `crew`, so a spinning guest never blocks the event loop or another instance, and no thread
is held for a guest that waits.
"""
