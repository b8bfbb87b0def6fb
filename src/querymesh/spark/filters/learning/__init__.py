"""How a filter should run, found out before it does, where that pays for itself.

::

    prepared.py ──> decided before in this session? ──> learning.py ──> what to do, and why
                                                        fixed_engine.py where the engine is settled
                    limits.py: what it may take          priced_sample.py: and cost in money
"""
