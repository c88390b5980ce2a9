/* The two editors: modes of the notations, marks, and offsets in UTF-16 units. */
"use strict";

const Editors = (() => {
  const string = { regex: /"(?:[^\\"]|\\.)*"?/, token: "string" };
  const escaped = { regex: /\/(?:[^\\/\n]|\\.)+\/[a-z]*/, token: "string" };
  const comment = (start) => ({ regex: new RegExp(`${start}.*`), token: "comment" });
  CodeMirror.defineSimpleMode("ffwd-json", {
    start: [
      { regex: /"(?:[^\\"]|\\.)*"(?=\s*:)/, token: "property" },
      string,
      { regex: /-?\d[\d.eE+-]*/, token: "number" },
      { regex: /true|false|null/, token: "atom" },
    ],
  });
  CodeMirror.defineSimpleMode("ffwd-lark", {
    start: [
      comment("//"), string, escaped,
      { regex: /%\w+/, token: "keyword" },
      { regex: /[?!]?[A-Za-z_]\w*(?=[^\n:]{0,80}:)/, sol: true, token: "def" },
      { regex: /[:|?*+~]|->/, token: "operator" },
    ],
  });
  CodeMirror.defineSimpleMode("ffwd-bnf", {
    start: [
      comment("#"), string,
      { regex: /'(?:[^\\']|\\.)*'?/, token: "string" },
      { regex: /\[(?:[^\\\]]|\\.)*\]/, token: "string" },
      { regex: /[\w-]+(?=\s*::=)/, token: "def" },
      { regex: /::=|[|?*+]/, token: "operator" },
    ],
  });
  const MODES = { "json-schema": "ffwd-json", lark: "ffwd-lark", gbnf: "ffwd-bnf", ebnf: "ffwd-bnf" };

  function create(place, label, options) {
    const editor = CodeMirror(place, {
      // Others would be lost: a text has the line ends that it was given.
      lineSeparator: "\n",
      // Tab leaves the editor, so that the keyboard reaches everything.
      extraKeys: { Tab: false, "Shift-Tab": false },
      ...options,
    });
    editor.getInputField().setAttribute("aria-label", label);
    return editor;
  }

  /* The positions of ascending offsets, in one walk over the lines. */
  function positions(doc, offsets) {
    const found = [];
    let line = 0, before = 0;
    let length = doc.getLine(0).length;
    for (const offset of offsets) {
      while (offset > before + length && line < doc.lastLine()) {
        before += length + 1;
        line += 1;
        length = doc.getLine(line).length;
      }
      found.push({ line, ch: Math.min(offset - before, length) });
    }
    return found;
  }

  /* The position of a line and a column, both from 1 and in characters. */
  function position(doc, line, column) {
    const text = doc.getLine(line - 1);
    if (text === undefined) return { line: doc.lastLine(), ch: 0 };
    const before = Array.from(text.slice(0, 2 * column)).slice(0, column - 1);
    return { line: line - 1, ch: before.join("").length };
  }

  const grammar = create(document.getElementById("grammar"), "Grammar", {
    lineNumbers: true, gutters: ["marks", "CodeMirror-linenumbers"], matchBrackets: { maxScanLines: 200 },
    autoCloseBrackets: true, mode: "ffwd-json",
  });
  const text = create(document.getElementById("text"), "Text", { lineWrapping: true, mode: null });
  let tokenMarks = [], problemMarks = [];

  function setLanguage(language) {
    const mode = MODES[language] || null;
    if (grammar.getOption("mode") !== mode) grammar.setOption("mode", mode);
  }

  /* Draw tokens as `[end, kind, …]`, and what is refused from `refusedAt` on. */
  function drawTokens(tokens, refusedAt) {
    const doc = text.getDoc();
    const ends = positions(doc, tokens.map((token) => token[0]));
    text.operation(() => {
      for (const mark of tokenMarks) mark.clear();
      tokenMarks = [];
      let from = { line: 0, ch: 0 };
      tokens.forEach((token, index) => {
        const [, kind, allowed, id] = token;
        const size = allowed === null ? "" : `, ${allowed.toLocaleString("en")} allowed`;
        if (CodeMirror.cmpPos(from, ends[index]) < 0) {
          tokenMarks.push(doc.markText(from, ends[index], {
            className: `tok-${kind} tok-first`, attributes: { title: `${kind}: token ${id}${size}` },
          }));
        }
        from = ends[index];
      });
      if (refusedAt !== null) {
        const [at] = positions(doc, [refusedAt]);
        tokenMarks.push(doc.markText(at, { line: doc.lastLine() + 1, ch: 0 }, {
          className: "tok-refused", attributes: { title: "refused" },
        }));
      }
    });
  }

  const SIGNS = { error: "✕", warning: "!", ignored: "○" };

  /* Draw marks of `{severity, message, line, column}` in the margin; errors also at their position. */
  function drawProblems(problems) {
    const doc = grammar.getDoc();
    const byLine = new Map();
    for (const problem of problems) {
      if (!problem.line || problem.line > doc.lineCount()) continue;
      if (!byLine.has(problem.line)) byLine.set(problem.line, []);
      byLine.get(problem.line).push(problem);
    }
    grammar.operation(() => {
      grammar.clearGutter("marks");
      for (const mark of problemMarks) mark.clear();
      problemMarks = [];
      for (const [line, found] of byLine) {
        const order = ["error", "warning", "ignored"];
        found.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
        const sign = document.createElement("span");
        sign.className = `mark ${found[0].severity}`;
        sign.textContent = SIGNS[found[0].severity];
        sign.title = found.map((one) => one.message).join("\n");
        grammar.setGutterMarker(line - 1, "marks", sign);
        for (const problem of found) {
          if (problem.severity === "ignored") continue;
          const from = position(doc, problem.line, problem.column || 1);
          const length = doc.getLine(from.line).length;
          const end = Math.max(grammar.getTokenAt({ line: from.line, ch: from.ch + 1 }).end, from.ch + 1);
          // At the end of a line the last character stands for it.
          const start = from.ch >= length ? Math.max(0, length - 1) : from.ch;
          problemMarks.push(doc.markText({ line: from.line, ch: start }, { line: from.line, ch: Math.min(end, length) }, {
            className: `at-${problem.severity}`, attributes: { title: problem.message },
          }));
        }
      }
    });
  }

  function jump(line, column) {
    grammar.focus();
    grammar.setCursor(position(grammar.getDoc(), line, column || 1));
    grammar.scrollIntoView(null, 80);
  }

  return { grammar, text, setLanguage, drawTokens, drawProblems, jump, positions };
})();
