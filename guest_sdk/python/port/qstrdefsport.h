// Names that only Python code here uses need no place in the read-only table.
