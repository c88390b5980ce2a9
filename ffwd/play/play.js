/* The state of the page, its requests, and what a person does. */
"use strict";

(() => {
  const { byId, h } = Panels;
  const { grammar, text } = Editors;
  const WAIT = 8, PATIENCE = 100;
  const tab = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
  // Fields of the grammar that the page has no control for.
  let others = { options: {}, registry: [] };
  let tokens = null;
  let settingText = false;
  let error = null, report = null, compileTime = 0, look = null;

  // ------------------------------------------------------------------------------- requests

  const framed = location.protocol === "about:";
  const waiting = new Map();
  let lastId = 0;
  if (framed) {
    window.addEventListener("message", (event) => {
      if (event.source !== window.parent || !event.data || !waiting.has(event.data.ffwd)) return;
      waiting.get(event.data.ffwd)(event.data.answer);
      waiting.delete(event.data.ffwd);
    });
  }

  async function send(request, signal) {
    if (framed) {
      const id = `${tab}:${(lastId += 1)}`;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        window.parent.postMessage({ ffwd: id, request }, "*");
      });
    }
    const response = await fetch("ask", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), signal,
    });
    return response.json();
  }

  const running = new Map();
  const due = new Set();

  /* Says whether all that was edited is answered. */
  function mark() {
    document.body.dataset.idle = running.size || due.size ? "no" : "yes";
  }

  /* The answer to the newest request of a kind; null if a newer one came meanwhile. */
  async function ask(kind, body) {
    const older = running.get(kind);
    if (older) older.abort();
    const controller = new AbortController();
    controller.since = performance.now();
    running.set(kind, controller);
    mark();
    let answer;
    try {
      answer = await send({ kind, tab, ...body }, controller.signal);
    } catch (failure) {
      if (controller.signal.aborted) return null;
      answer = { error: { type: "Offline", message: `ffwd play does not answer: ${failure.message}` } };
    }
    if (running.get(kind) !== controller) return null;
    running.delete(kind);
    // What is drawn of the answer comes before.
    setTimeout(mark);
    return answer;
  }

  /* Runs a function soon after the last call, and not beside an unfinished request, unless it is slow. */
  function eventually(kind, run) {
    let timer = null;
    const fire = () => {
      const busy = running.get(kind);
      const age = busy ? performance.now() - busy.since : PATIENCE;
      if (age < PATIENCE) timer = setTimeout(fire, Math.min(PATIENCE - age, WAIT));
      else { timer = null; due.delete(kind); run(); }
    };
    return () => {
      if (timer !== null) clearTimeout(timer);
      due.add(kind);
      mark();
      timer = setTimeout(fire, WAIT);
    };
  }

  // ---------------------------------------------------------------------------------- state

  const CHECKED = {
    "any-order": ["property_order", "any", "declared"], "any-numbers": ["numbers", "any", "plain"],
    "any-escapes": ["escapes", "any", "canonical"], lenient: ["policy", "lenient", "strict"],
  };

  function grammarOf() {
    const language = byId("language").value;
    const found = { language, text: grammar.getValue() };
    if (language === "json-schema") {
      found.options = { ...others.options, whitespace: byId("whitespace").value };
      for (const [id, [name, on, off]] of Object.entries(CHECKED)) found.options[name] = byId(id).checked ? on : off;
      if (found.options.whitespace !== "consistent") { delete found.options.separators; delete found.options.indent; }
      if (others.registry.length) found.registry = others.registry;
    } else if (language === "regex") {
      found.dialect = byId("dialect").value;
      found.flags = byId("flags").value;
    } else if (language === "gbnf" || language === "ebnf") found.root = byId("root").value;
    return found;
  }

  const bounded = (id, fallback) => (byId(id).value !== "" && byId(id).checkValidity() ? Number(byId(id).value) : fallback);

  function stateOf() {
    const doc = text.getDoc();
    return {
      grammar: grammarOf(), tokenizer: byId("tokenizer").value, text: text.getValue(), cursor: doc.indexFromPos(doc.getCursor()),
      tokens, prompt: byId("prompt").value, max_tokens: bounded("max-tokens", 256), temperature: bounded("temperature", 0), seed: bounded("seed", 0),
    };
  }

  function setText(value, cursor, itsTokens) {
    settingText = true;
    text.operation(() => {
      text.setValue(value);
      const [at] = Editors.positions(text.getDoc(), [cursor === undefined ? value.length : Math.min(cursor, value.length)]);
      text.setCursor(at);
    });
    settingText = false;
    tokens = itsTokens || null;
    lookSoon();
  }

  function showOptions() {
    const language = byId("language").value;
    for (const label of document.querySelectorAll("[data-for]")) label.hidden = !label.dataset.for.split(" ").includes(language);
    Editors.setLanguage(language);
  }

  function apply(state) {
    const { grammar: its } = state;
    const options = its.options || {};
    others = { options, registry: its.registry || [] };
    byId("language").value = its.language;
    byId("whitespace").value = options.whitespace || "consistent";
    for (const [id, [name, on]] of Object.entries(CHECKED)) byId(id).checked = options[name] === on;
    byId("root").value = its.root || "root";
    byId("dialect").value = its.dialect || "rust";
    byId("flags").value = its.flags || "";
    byId("prompt").value = state.prompt || "";
    byId("max-tokens").value = state.max_tokens || 256;
    byId("temperature").value = state.temperature || 0;
    byId("seed").value = state.seed || 0;
    if ([...byId("tokenizer").options].some((option) => option.value === state.tokenizer)) byId("tokenizer").value = state.tokenizer;
    showOptions();
    grammar.setValue(its.text);
    setText(state.text, state.cursor, state.tokens);
    checkSoon();
  }

  function say(message, isError) {
    byId("message").textContent = message;
    byId("message").className = isError ? "error" : "soft";
  }

  // --------------------------------------------------------------------- what follows an edit

  function append(piece) {
    text.replaceSelection(piece, "end");
  }

  function before(cursor) {
    return look.tokens.find(([end]) => end >= cursor) || null;
  }

  async function lookNow() {
    const state = stateOf();
    byId("cursor").classList.add("busy");
    const answer = await ask("look", { state });
    if (answer === null) return;
    byId("cursor").classList.remove("busy");
    error = answer.error || null;
    if (error) {
      look = null;
      Editors.drawTokens([], null);
      Panels.drawCursor(null, null, append, error);
      byId("reading").textContent = "";
      byId("refusal").replaceChildren();
    } else {
      look = answer;
      compileTime = answer.compile_us;
      Editors.drawTokens(answer.tokens, answer.refused ? answer.refused.at : null);
      Panels.drawText(answer, append);
      Panels.drawCursor(answer.cursor, state.cursor > 0 ? before(state.cursor) : null, append);
    }
    drawGrammar();
  }

  /* The grammar's part is drawn again only if it says something else: a report may be long. */
  let drawnOf = [];
  function drawGrammar() {
    const of = [JSON.stringify(error), report, compileTime];
    if (of.every((part, index) => part === drawnOf[index])) return;
    drawnOf = of;
    Panels.drawGrammar(error, report, compileTime);
  }

  async function checkNow() {
    const answer = await ask("check", { grammar: grammarOf() });
    if (answer === null) return;
    report = answer.error ? null : answer;
    drawGrammar();
  }

  const lookSoon = eventually("look", lookNow);
  const checkSoon = eventually("check", checkNow);

  function grammarChanged() {
    checkSoon();
    lookSoon();
  }

  /* Runs a request of a button, which is disabled meanwhile. */
  async function pressed(button, place, kind, body, draw) {
    button.disabled = true;
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await ask(kind, body);
      if (answer === null) return;
      if (answer.error) Panels.failed(place, answer.error);
      else draw(answer);
    } finally {
      button.disabled = false;
      place.removeAttribute("aria-busy");
    }
  }

  // ------------------------------------------------------------------------------- the controls

  function addTokenizer(name, title) {
    const select = byId("tokenizer");
    if (![...select.options].some((option) => option.value === name)) select.append(h("option", { value: name }, title));
    select.value = name;
  }

  async function load() {
    const path = byId("path").value.trim();
    const answer = await ask("tokenizer", { path });
    if (answer === null) return;
    if (answer.error) { say(answer.error.message, true); return; }
    addTokenizer(answer.tokenizer, answer.tokenizer);
    say(`Loaded ${answer.tokenizer}: ${Panels.number(answer.vocab_size)} tokens.`);
    tokens = null;
    lookSoon();
  }

  async function save() {
    const answer = await ask("save", { state: stateOf() });
    if (answer === null) return;
    if (answer.error) { say(answer.error.message, true); return; }
    const link = h("a", { href: URL.createObjectURL(new Blob([answer.text], { type: "application/json" })), download: "play.ffwd.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say("Saved as play.ffwd.json.");
  }

  async function open(file) {
    const answer = await ask("open", { text: await file.text() });
    if (answer === null) return;
    // What was in the page stays.
    if (answer.error) { say(`${file.name}: ${answer.error.message}`, true); return; }
    apply(answer.state);
    if (answer.tokenizer_known) say(`Opened ${file.name}.`);
    else {
      byId("path").value = answer.state.tokenizer;
      say(`Opened ${file.name}. Its tokenizer is ${answer.state.tokenizer}: load it, or keep the one that is chosen.`, true);
    }
  }

  async function generate() {
    const place = byId("generated");
    byId("stop").disabled = false;
    await pressed(byId("generate"), place, "generate", { state: stateOf() }, (answer) => {
      Panels.drawGenerated(answer);
      addTokenizer(answer.tokenizer, answer.tokenizer);
      setText(answer.text, undefined, answer.tokens);
    });
    byId("stop").disabled = true;
  }

  function listen() {
    grammar.on("change", grammarChanged);
    text.on("change", () => { if (!settingText) tokens = null; lookSoon(); });
    text.on("cursorActivity", () => lookSoon());
    for (const id of ["whitespace", ...Object.keys(CHECKED), "root", "dialect", "flags"]) byId(id).addEventListener("input", grammarChanged);
    byId("language").addEventListener("input", () => { showOptions(); grammarChanged(); });
    byId("tokenizer").addEventListener("input", () => { tokens = null; lookSoon(); });
    byId("load").addEventListener("click", load);
    byId("path").addEventListener("keydown", (event) => { if (event.key === "Enter") load(); });
    byId("save").addEventListener("click", save);
    byId("open").addEventListener("change", (event) => {
      const [file] = event.target.files;
      event.target.value = "";
      if (file) open(file);
    });
    byId("ten").addEventListener("click", () => {
      const state = stateOf();
      pressed(byId("ten"), byId("documents"), "documents", { state, count: 10 }, (answer) => {
        Panels.drawDocuments(answer, (value) => { setText(value); text.focus(); });
        byId("seed").value = (state.seed + 1) % 2147483648;
      });
    });
    byId("generate").addEventListener("click", generate);
    byId("stop").addEventListener("click", () => send({ kind: "cancel", tab, of: "generate" }));
    byId("compare").addEventListener("click", () => {
      pressed(byId("compare"), byId("comparison"), "compare", { state: stateOf() }, Panels.drawComparison);
    });
  }

  async function start() {
    const hello = await ask("hello", {});
    if (hello.error) { say(hello.error.message, true); return; }
    for (const [name, title] of Object.entries(hello.languages)) byId("language").append(h("option", { value: name }, title));
    if (hello.given) {
      byId("language").append(h("option", { value: "python" }, "Python"));
      if (hello.state.grammar.language === "python") grammar.setOption("readOnly", true);
    }
    for (const [name, title] of Object.entries(hello.tokenizers)) byId("tokenizer").append(h("option", { value: name }, title));
    byId("generate").textContent = `Generate from the cursor with ${hello.model}`;
    apply(hello.state);
    listen();
    document.body.dataset.ready = "yes";
  }

  start();
})();
