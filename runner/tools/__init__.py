"""
Tools: what the host does in the world when an agent, or a model on its behalf, asks for it by name.
"""
