"""
The host's side of one instance, from open to close: it feeds the machine and does what the guest asks for.

Everything that touches the world is here or below in `capabilities`; the machine only computes. Slices run
on a worker thread, so a spinning guest never blocks the event loop, and no thread is held for a guest
that waits.
"""
