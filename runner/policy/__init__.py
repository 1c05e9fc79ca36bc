"""
What an operator allows an agent: grants, as rules that are asked before anything is bound or done.
"""
