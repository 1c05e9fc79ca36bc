"""
The trusted core: sans-I/O, small enough to read in an hour, everything from the guest is hostile.

    admit (module) -> Admitted -> Program -> boot -> Image -> Machine -> step(input) -> StepResult

Read in this order: `abi` (the table), `limits`, `state`, `admission`, `engine`, `linker`, `slice`,
`instance`, `mapping`, `image`, `run`, `boot`, `step`, `machine`.

Tried and rejected:

- Answering calls on the spot, with blocking imports: a waiting guest would hold a thread and a
  WebAssembly stack, and could not be snapshotted.
- Raising in a host function to stop a guest: the binding keeps such an exception in a process-wide
  variable, where another thread may pick it up. Taking the fuel away stops the guest as surely.
- Undoing a failed slice by copying its pages back: memory that has grown can not shrink, so the
  instance is made anew from the pages before the delivery, in less than a tenth of a millisecond.
- Reading tables through the engine: it costs a call for each element; admission makes them constant.
"""
