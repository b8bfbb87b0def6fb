"""Functions that cost more than a look: asked once for equal inputs, in parts, several at a time.

::

    rows ──distinct.py──> inputs that differ ──memory.py, store.py──> those nobody has asked about
                                                                          │
    rows <──spread─── answers <──pieces.py: in calls of so many rows, several at once───┘
"""
