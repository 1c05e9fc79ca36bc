"""
What the project promises in numbers. Each module is a command: `python -m benchmarks.start --json`.

Figures come with the machine they were taken on; quote ratios within one run where you can. Nothing here is
a test: a slow machine is not a defect.
"""
