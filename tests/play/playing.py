"""A session, a server and a page that the tests of `ffwd play` share."""

import threading
from contextlib import contextmanager

from ffwd.play.server import PlayServer
from ffwd.play.session import Session

SCHEMA = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,9}$"},
    "status": {"enum": ["new", "paid", "shipped"]}
  },
  "required": ["name", "status"],
  "additionalProperties": false
}"""


def state(text="", *, grammar=SCHEMA, language="json-schema", tokenizer="box", **more):
    """A state of the page."""
    return {
        "grammar": {"language": language, "text": grammar},
        "tokenizer": tokenizer,
        "text": text,
        **more,
    }


@contextmanager
def served(session=None):
    """A server of a session on a free port, with its page."""
    found = Session() if session is None else session
    with PlayServer(found) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            found.close()
