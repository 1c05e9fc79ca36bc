"""
Models: the port that every provider implements, and the scripted one that needs no key and no network.

A provider is asked with the whole conversation each time and keeps none of it: a conversation that lived
at a provider could be neither replayed nor moved to another machine.
"""
