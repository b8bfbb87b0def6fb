"""A DataFrame and three expensive Python conditions: each kind of row meets them in its own order.

Run it with `python examples/filter.py`.
"""

import hashlib

import querymesh as qm

ROWS = 30_000


def scanner(service: str) -> qm.Predicate:
    """Some Python on every row; it drops most rows of its own service, and few of the others."""

    def scan(of: str, body: str) -> bool:
        digest = hashlib.pbkdf2_hmac("sha1", body.encode(), service.encode(), 20)
        return digest[0] < (25 if of == service else 230)

    columns = ["service", "body"]
    return qm.predicate(scan, columns=columns, name=f"{service}_scan", vectorised=False)


def main() -> None:
    """Filter, count, and show what was decided."""
    spark = qm.local_session()
    logs = spark.range(ROWS).selectExpr(
        "id",
        "element_at(array('web', 'mail', 'dns'), 1 + int(id % 3)) AS service",
        "sha2(string(id), 256) AS body",
    )
    # A job of half a second would not be learned for: it would run as written. This one insists.
    learning = qm.policies.Mesh(sample_rows=2000)
    found = logs.transform(
        qm.where(scanner("web"), scanner("mail"), scanner("dns"), policy=learning)
    )
    print(f"{found.count():,} of {ROWS:,} rows are left")

    run = qm.inspect(found)
    plain = 3 * ROWS
    print(f"{run.counts.evaluations:,} evaluations; Spark's own filter makes {plain:,}")
    print(f"\n{run.explain()}")
    spark.stop()


if __name__ == "__main__":
    main()
