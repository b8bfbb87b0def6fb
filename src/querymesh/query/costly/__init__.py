"""Functions that cost more than a look: asked once for equal inputs, in parts, several at a time.

::

    rows ──distinct.py──> inputs that differ ──memory.py, store/──> those nobody here knows
      ^                   proxy/: clear ones need no call             │ sharing/: nor another worker
      └──────spread────── answers <──pieces.py, calls/: calls of so many rows, several at once
                                     account/: with leave to be made, and money for them

`asking.py` puts this together for one function in one process, and says what of it pays;
`in_run.py` finds that again in all tasks of a worker.
"""
