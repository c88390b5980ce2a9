"""`ffwd.view.explore`: the page in a kernel of Jupyter, and in the frame that a notebook shows."""

import json
import queue
from importlib import resources

import pytest
from browsers import needs_browser, resize, started
from jupyter_client.manager import KernelManager
from playing import SCHEMA
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import ffwd
import ffwd.model
import ffwd.tokenizer
from ffwd.play.errors import PlayError
from ffwd.play.schema import MAX_TEXT

CODE = f"""
import ffwd
shown = ffwd.view.explore(ffwd.json_schema({SCHEMA!r}), text='{{"name": "A')
shown
"""


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def until(client, kind, matches=lambda content: True):
    """The content of the next message of a kind; an error of the kernel fails the test."""
    while True:
        message = client.get_iopub_msg(timeout=120)
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == kind and matches(message["content"]):
            return message["content"]


def custom(client, comm, content):
    """Send a message of the frame to the widget."""
    data = {"method": "custom", "content": content}
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": data})
    client.shell_channel.send(message)

    def of_it(found):
        data = found["data"]
        return data.get("method") == "custom" and data["content"]["ffwd"] == content["ffwd"]

    return until(client, "comm_msg", of_it)["data"]["content"]


def test_a_kernel_answers_the_page(kernel):
    """The widget is displayed, gives its page, and answers as a server does."""
    kernel.execute(CODE)
    comm = until(kernel, "comm_open", lambda found: "_esm" in found["data"].get("state", {}))[
        "comm_id"
    ]
    shown = until(kernel, "execute_result")
    assert shown["data"]["application/vnd.jupyter.widget-view+json"]["model_id"] == comm
    page = custom(kernel, comm, {"ffwd": "a", "page": True})["page"]
    assert "connect-src 'none'" in page
    answer = custom(kernel, comm, {"ffwd": "b", "request": {"kind": "hello"}})["answer"]
    state = answer["state"]
    assert state["grammar"]["text"] == SCHEMA
    asked = {"kind": "look", "tab": "t", "state": state}
    answer = custom(kernel, comm, {"ffwd": "c", "request": asked})["answer"]
    assert "".join(token[4] for token in answer["tokens"]) == '{"name": "A'
    refused = custom(kernel, comm, {"ffwd": "d", "request": {"kind": "none"}})["answer"]
    assert refused["error"]["type"] == "PlayError"


class Notebook:
    """A host of the widget: the test carries the messages that a kernel's channel would."""

    def __init__(self, browser, widget, path):
        script = resources.files("ffwd.play").joinpath("frame.js").read_text(encoding="utf-8")
        assert script.count("export default") == 1
        host = """
        window.asked = [];
        const model = {
          send: (message) => asked.push(message),
          on: (kind, handler) => { if (kind === "msg:custom") window.answered = handler; },
          off: () => { window.answered = null; },
        };
        window.close_ = plugin.render({ model, el: document.getElementById("cell") });
        """
        text = script.replace("export default", "window.plugin =") + host
        path.write_text(
            f'<!doctype html><p>cell</p><div id="cell"></div><script type="module">{text}</script>',
            encoding="utf-8",
        )
        self._browser, self._widget = browser, widget
        self._answers = queue.Queue()
        self._open = 0
        widget.send = lambda message, buffers=None: self._answers.put(message)
        resize(browser, 1280)
        browser.get_log("browser")
        browser.get(path.as_uri())
        self.idle()

    def _carry(self, _):
        """Carry messages both ways, and return whether nothing is left to do."""
        self._browser.switch_to.default_content()
        for message in self._browser.execute_script("return asked.splice(0)"):
            self._widget._handle_custom_msg(message, [])
            self._open += 1
        while self._open:
            answer = self._answers.get(timeout=120)
            self._browser.execute_script("answered(arguments[0])", answer)
            self._open -= 1
        self._browser.switch_to.frame(self._browser.find_element(By.TAG_NAME, "iframe"))
        data = self._browser.execute_script("return {...document.body.dataset}")
        return data.get("ready") == data.get("idle") == "yes"

    def idle(self):
        """Wait in the frame until the page has its answers."""
        WebDriverWait(self._browser, 120, 0.02).until(self._carry)


@needs_browser
def test_the_page_works_in_the_frame_of_a_notebook(tmp_path):
    grammar = ffwd.json_schema(SCHEMA)
    tokenizer = ffwd.tokenizer.load(ffwd.model.path())
    widget = ffwd.view.explore(grammar, tokenizer, text='{"name": "A')
    with started() as browser:
        notebook = Notebook(browser, widget, tmp_path / "host.html")
        assert browser.execute_script("return Editors.text.getValue()") == '{"name": "A'
        browser.execute_script("Editors.text.focus(); Editors.text.execCommand('goDocEnd')")
        ActionChains(browser).send_keys('da", "status": "').perform()
        notebook.idle()
        assert browser.find_element(By.ID, "reading").text == "Accepted so far."
        drawn = browser.find_elements(By.CSS_SELECTOR, "#text .tok-forced")
        assert "status" in [span.text for span in drawn]
        browser.find_element(By.XPATH, "//ul[@id='allowed']//button[text()='paid']").click()
        notebook.idle()
        value = browser.execute_script("return Editors.text.getValue()")
        assert value == '{"name": "Ada", "status": "paid'
        browser.find_element(By.ID, "ten").click()
        notebook.idle()
        rows = browser.find_elements(By.CSS_SELECTOR, "#documents tbody tr")
        assert len(rows) == 10
        assert browser.get_log("browser") == []
    widget.close()


def test_a_composed_grammar_is_shown_and_not_edited(tmp_path):
    grammar = ffwd.seq(ffwd.lit("a"), ffwd.regex("[0-9]+"))
    vocabulary = ffwd.tokenizer.load(ffwd.model.path()).vocabulary()
    widget = ffwd.view.explore(grammar, vocabulary, text="a1")
    session = widget._session
    hello = session.answer({"kind": "hello"})
    assert hello["given"]
    assert hello["state"]["grammar"] == {"language": "python", "text": str(grammar)}
    look = session.answer({"kind": "look", "state": hello["state"]})
    assert look["complete"]
    json.dumps(look)
    error = session.answer({"kind": "compare", "state": hello["state"]})["error"]
    assert "of Python" in error["message"]
    schema = {**hello["state"], "grammar": {"language": "regex", "text": "a1"}}
    error = session.answer({"kind": "compare", "state": schema})["error"]
    assert "choose one by its path" in error["message"]
    widget.close()


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="grammar must be a grammar"):
        ffwd.view.explore({"type": "array"})
    with pytest.raises(ffwd.VocabularyError):
        ffwd.view.explore(None, "no/such/path")
    with pytest.raises(PlayError, match="/text"):
        ffwd.view.explore(ffwd.lit("a"), text="x" * (MAX_TEXT + 1))


def test_messages_that_are_none_of_the_page_are_ignored():
    widget = ffwd.view.explore()
    sent = []
    widget.send = lambda message, buffers=None: sent.append(message)
    for message in (None, [], {}, {"ffwd": 3}, {"other": "a"}):
        widget._handle_custom_msg(message, [])
    assert sent == []
    widget.close()
