"""
What each operation of the ABI that makes a call means: one handler for each, as `kernel.abi` names them.

Input: guests, for every request. A handler gets a decoded request, checks its shape, does the work and
answers with a status and a payload; only a bug raises.
"""
