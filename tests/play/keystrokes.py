"""Print how long a page of `ffwd play` takes from an edit to what is drawn of its answer.

`python tests/play/keystrokes.py DOCUMENTS [TOKENIZER]`: the documents are MaskBench's, as JSON
Lines, also as `.xz`, of which ten are taken from all over. They need a browser, and a quiet
machine: it is no test.
"""

import json
import lzma
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browsers import resize, started
from playing import served

from ffwd.play.session import Session

# Edits a text at its end, or a schema at its start, one character at a time.
SCRIPT = """
const [schema, text, done] = arguments;
const idle = () => new Promise((found) => {
  const look = () => (document.body.dataset.idle === "yes" ? found() : setTimeout(look));
  look();
});
(async () => {
  const times = { text: [], schema: [] };
  Editors.grammar.setValue(schema);
  Editors.text.setValue("");
  await idle();
  const timed = async (kind, edit) => {
    const begun = performance.now();
    edit();
    await idle();
    times[kind].push(performance.now() - begun);
  };
  for (const part of [...text].slice(0, 60)) {
    const end = { line: Editors.text.lastLine(), ch: 1e9 };
    await timed("text", () => Editors.text.replaceRange(part, end));
  }
  for (let index = 0; index < 40; index += 1) {
    await timed("schema", () => Editors.grammar.replaceRange(" ", { line: 0, ch: 0 }));
  }
  done(times);
})();
"""


def main(documents: str, tokenizer: str | None = None) -> None:
    """Measure, and print a line for each kind of edit."""
    opened = lzma.open if documents.endswith(".xz") else open
    with opened(documents, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    times: dict[str, list[float]] = {"text": [], "schema": []}
    session = Session(tokenizer=tokenizer)
    with started(blocked=("https://*",)) as browser, served(session) as server:
        browser.set_script_timeout(600)
        resize(browser, 1280)
        browser.get(server.address)
        for row in rows[:: max(1, len(rows) // 10)][:10]:
            schema = json.dumps(row["schema"], indent=1)
            valid = [test["data"] for test in row["tests"] if test["valid"]]
            text = json.dumps(valid[0] if valid else {})
            for kind, found in browser.execute_async_script(SCRIPT, schema, text).items():
                times[kind] += found
    for kind, found in times.items():
        found.sort()
        last = found[int(0.99 * len(found))]
        median = statistics.median(found)
        print(f"{kind}: {len(found)} edits, median {median:.0f} ms, p99 {last:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
