"""A paid language model as a condition: asked once about equal texts, many at a time, on a budget.

Run it with `python examples/llm_filter.py`. A server on this machine stands in for the model: it
takes 50 ms to answer, costs nothing, and fails now and then as the real ones do.
"""

import json
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

import pyarrow as pa

import querymesh as qm

ROWS, TEXTS = 20_000, 1_000
PRICE = qm.Price(per_call=0.0005, per_token=0.000002)


class Model(BaseHTTPRequestHandler):
    """What stands in for the model: it takes a list of texts, and says which are complaints."""

    calls = 0
    one_by_one = threading.Lock()

    def do_POST(self) -> None:
        """Answer one call; every tenth fails."""
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Model.one_by_one:
            Model.calls += 1
            failed = Model.calls % 10 == 0
        time.sleep(0.05)
        body = b"" if failed else json.dumps([complains(text) for text in texts]).encode()
        self.send_response(503 if failed else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def complains(text: str) -> bool:
    """What the model thinks of a text."""
    return any(word in text for word in ("broken", "late", "refund"))


def main() -> None:
    """Filter twice: the second time everything is remembered."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    answers = tempfile.mkdtemp(prefix="answers-")

    @qm.predicate(
        columns=["text"],
        batch=20,  # texts in a call
        concurrency=8,  # calls at once, in each task
        rate_limit=100,  # calls a second, in all tasks together
        retries=5,  # an HTTPError is an OSError: that is tried again unless told otherwise
        timeout_s=10,
        memo=qm.Memo(
            path=answers, version="model-1"
        ),  # on a cluster: a path that all see, or s3://
        price=PRICE,
    )
    def is_complaint(texts: pa.Array) -> list[bool]:
        body = json.dumps(texts.to_pylist()).encode()
        with urlopen(Request(url, body)) as response:
            held: list[bool] = json.load(response)
        return held

    spark = qm.local_session()
    tickets = spark.range(ROWS).selectExpr(
        "id",
        "element_at(array('mail', 'chat', 'phone'), 1 + int(id % 3)) AS channel",
        f"concat('ticket ', id % {TEXTS}, ': my order is ', element_at("
        "array('broken', 'on its way', 'late', 'fine', 'lovely'), 1 + int(id % 5))) AS text",
    )
    conditions = is_complaint, "channel <> 'phone'"
    found = tickets.transform(qm.where(*conditions, budget=qm.Budget(1.00, then="stop")))
    print(f"{found.count():,} of {ROWS:,} tickets are complaints by mail or chat")
    print(f"{Model.calls:,} calls of the model; a plain UDF would make {ROWS:,}")
    print(f"\n{qm.inspect(found).explain()}\n")

    Model.calls = 0
    again = tickets.transform(qm.where(*conditions, budget=1.00))
    print(f"again: {again.count():,} tickets, {Model.calls} calls: all was remembered")
    spark.stop()


if __name__ == "__main__":
    main()
