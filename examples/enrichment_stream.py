"""A stream of orders, enriched from two tables: it learns from its first batches, then switches.

Most web orders have a wrong card number, most shop orders lack the note of a clerk. One order of
conditions for all is wrong for one of the two. Run it with `python examples/enrichment_stream.py`.
"""

import re
import tempfile

import querymesh as qm

FILES, ROWS = 6, 5_000
SQL = """
    SELECT o.id, o.channel, c.country, p.shelf FROM Orders o, Customers c, Products p
    WHERE valid_card(o.card) AND by_clerk(o.note)
      AND o.customer = c.customer AND o.product = p.product
"""


@qm.predicate(vectorised=False)
def valid_card(card: str) -> bool:
    """The checksum of a card number (Luhn)."""
    digits = [int(digit) for digit in card]
    return (sum(digits[1::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[::2])) % 10 == 0


@qm.predicate(vectorised=False)
def by_clerk(note: str) -> bool:
    """Whether somebody has signed."""
    return re.search(r"\b(clerk|cashier) [0-9]+ (signed|stamped)$", note) is not None


def main() -> None:
    """Run the stream to the end of its files, and show what it learned."""
    spark = qm.local_session()
    folder = tempfile.mkdtemp(prefix="querymesh-example-")
    orders = spark.range(FILES * ROWS).selectExpr(
        "id", "if(id % 2 = 0, 'web', 'shop') AS channel",
        "if(id % 2 = 0, lpad(id * 7, 16, '4'), '4539578763621486') AS card",
        "concat('order ', id, if(id % 2 = 0 OR id % 9 = 0, ', clerk 7 signed', ', paid')) AS note",
        "md5(string(id % 500)) AS customer", "md5(string(id % 300)) AS product",
    )  # fmt: skip
    orders.repartition(FILES).write.parquet(f"{folder}/orders")
    reader = spark.readStream.schema(orders.schema).option("maxFilesPerTrigger", 1)
    inputs = {
        "Orders": reader.parquet(f"{folder}/orders"),
        "Customers": spark.range(450).selectExpr("md5(string(id)) AS customer", "'NL' AS country"),
        "Products": spark.range(270).selectExpr("md5(string(id)) AS product", "'A' AS shelf"),
    }
    query = qm.query(SQL, functions={"valid_card": valid_card, "by_clerk": by_clerk})
    out = qm.run(query, inputs, checkpoint=f"{folder}/checkpoint")
    run = qm.inspect(out)

    def keep(batch, number):
        batch.write.mode("append").parquet(f"{folder}/result")
        if number == 2:  # so that this short stream does not end before it has learned
            run.wait_until_learned(seconds=300)

    writer = out.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    print(f"{spark.read.parquet(f'{folder}/result').count():,} enriched orders in {folder}")
    for batch in run.batches:
        print(f"batch {batch.batch_id}: {batch.evaluations / batch.rows_in:.2f} evaluations a row")
    print(f"\n{run.explain()}")
    spark.stop()


if __name__ == "__main__":
    main()
