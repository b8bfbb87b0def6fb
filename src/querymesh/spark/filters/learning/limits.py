"""What learning may take, and what is said where it does not pay."""

TOO_SMALL = (
    "the job is too small, or its conditions too cheap, for learning to pay: it runs as written"
)

TOO_DEAR = (
    "to ask functions about the first rows would take more of the budget than learning may spend "
    "(sample_budget): it runs as written"
)

LEAST_BUDGET_S = 0.25
"""A sample takes about as long: a job that cannot pay for it is not sampled."""

LOOK_BUDGET_S = 0.05
"""What learning takes where a quick look into the files will do."""

MOST_BUDGET_S = 20.0
"""However large the job, learning takes no longer."""

UNKNOWN_ROWS = 1_000_000
"""What a job is taken for whose size nobody knows."""

SPARE = 4
"""So many times the rows that are profiled first are sampled, in case they leave it in doubt."""

PYTHON_START_S = 0.3
"""What the first Python workers take to start."""

GLIMPSE_ROWS, FURTHER_S = 256, 0.04
"""Rows that tell first what the order as written costs, and what learning takes from there on."""

LOOKED_AT, LEAST_LOOKED_AT = 2, 100
"""So many times the rows that are profiled first are looked at, and rows that a quick look must
have found to be believed."""

SAMPLE_BYTES = 128 << 20
"""About how large a sample may be."""
