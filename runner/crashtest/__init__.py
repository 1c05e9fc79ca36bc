"""
Does an agent's life survive? Kill its process at every boundary, go on, and compare with a life that was
left alone.

The judge stands outside: a ledger file that effects write to before they report, with the disk as its
witness. What counts is what the ledger says, never the journal's own opinion of itself. And the judge is
tried too: a planted defect must turn the verdict red, or the test proves nothing.
"""
