"""A cheap model in front of a costly function: approximate, asked for, and never silent.

::

    sampled answers ── half ──> model.py: score = P(true)
                    └─ half ──> calibration.py: thresholds that hold the guarantee
                                                  │
    rows ──decision.py──> score below ─┼─ doubtful ─┼─ above
                            false      │  asked     │  true     (a share of both is asked: audit.py)
                                                  │
    what audits found ──watch.py──> does the guarantee still hold? if not, all rows are asked
"""
