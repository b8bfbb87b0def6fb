"""Answers that others find: in a folder, for other workers of a run and for later runs.

::

    fingerprint.py   which function it is ──> the name of its folder
    answer_store.py  what others kept, looked for now and then (pace.py); what is kept for others
    kept_answers.py  answers in the order of their keys, in memory and in a file
"""
