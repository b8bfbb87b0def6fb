"""A cheap model of what a costly function answers: hashed features and a logistic fit.

::

    arguments ──encoder.py──> rows of features ──logistic.py──> the probability of each answer
                  (texts: hashing.py)   (rows.py)     (weighing.py)
"""
