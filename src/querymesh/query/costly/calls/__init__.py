"""One batch of calls: its pieces, the threads or the event loop that make them, and their errors.

::

    forms.py ──> a call of arrays
    work.py  which piece is next, what became of each, and whether it may be called now
      │ threads.py     threads (crew.py keeps them), of which some may hang (lanes.py)
      │ event_loop.py  tasks, for an `async def`
      └ refusals.py    what an error says about the call
"""
