"""
Notes: what an agent keeps on purpose, apart from its linear memory, and can search.
"""
