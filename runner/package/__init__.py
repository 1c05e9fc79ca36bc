"""
Agents on disk: the manifest, and the folder or file that an agent is loaded from.

Input: the agent's author, whom nobody has reason to trust. Everything is bounded before it is read, and
nothing outside the agent's own folder is opened.

The manifest is checked by hand rather than with pydantic, which alone would take longer to import than
`runner run` may take to start.
"""
