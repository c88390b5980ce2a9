/* What is drawn of an answer. Whatever comes from a grammar or a tokenizer is set as text only. */
"use strict";

const Panels = (() => {
  function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (name === "className") element.className = value;
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const byId = (id) => document.getElementById(id);
  const number = (value) => Number(value).toLocaleString("en");
  const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
  const VISIBLE = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };
  const visible = (text) => text.replace(/[ \n\t\r]/g, (character) => VISIBLE[character]);
  const quoted = (text) => h("code", {}, text === "" ? "∅" : text);
  function time(microseconds) {
    if (microseconds < 1000) return `${microseconds.toFixed(1)} µs`;
    return microseconds < 1e6 ? `${(microseconds / 1e3).toFixed(1)} ms` : `${(microseconds / 1e6).toFixed(2)} s`;
  }
  const percent = (share) => `${Math.round(100 * share)}%`;

  function jumpTo(label, line, column) {
    if (!line) return h("span", { className: "soft" }, label);
    return h("button", { type: "button", className: "link", onclick: () => Editors.jump(line, column) }, label);
  }

  function places(where) {
    return where.flatMap((one) => [" ", jumpTo(one.line ? `${one.name} (line ${one.line})` : one.name, one.line, one.column)]);
  }

  function problem(one) {
    const place = one.line ? [jumpTo(`line ${one.line}:${one.column}`, one.line, one.column), " "] : [];
    return h("li", { className: one.severity }, ...place, one.message);
  }

  const REFUSALS = { grammar: "The grammar is refused.", text: "The text cannot be followed.", other: "Nothing can be shown." };

  /* The verdict on the grammar, its problems in the margin and below, and the keywords of a schema. */
  function drawGrammar(error, report, compileTime) {
    const problems = [];
    if (error) problems.push({ severity: "error", ...error });
    for (const one of (report && report.problems) || []) {
      const same = (other) => other.line === one.line && other.column === one.column && other.severity === "error";
      if (!(one.severity === "error" && problems.some(same))) problems.push(one);
    }
    const noted = ((report && report.noted) || []).map((line) => ({
      severity: line.fidelity === "refused" ? "error" : line.fidelity === "widened" || line.suggestion ? "warning" : "ignored",
      message: `\`${line.keyword}\` is ${line.fidelity}: ${line.reason}`, line: line.line, column: line.column,
    }));
    Editors.drawProblems([...problems, ...noted.filter((line) => line.severity === "ignored")]);
    const verdict = byId("verdict");
    const bad = problems.some((one) => one.severity === "error");
    verdict.className = `verdict ${bad ? "bad" : "good"}`;
    if (error) verdict.textContent = REFUSALS[error.about] || REFUSALS.other;
    else verdict.textContent = bad ? REFUSALS.grammar : `The grammar is good: compiled in ${time(compileTime)}.`;
    const more = (report && report.more_problems) || 0;
    byId("problems").replaceChildren(...problems.map(problem), ...(more ? [h("li", {}, `and ${number(more)} more`)] : []));
    const fidelity = byId("fidelity");
    const counts = Object.entries((report && report.counts) || {});
    fidelity.hidden = counts.length === 0;
    fidelity.querySelector("summary").textContent = `Keywords: ${counts.map(([name, value]) => `${number(value)} ${name}`).join(", ")}`;
    const rest = (report && report.more_noted) || 0;
    fidelity.querySelector("ul").replaceChildren(...noted.map(problem), ...(rest ? [h("li", {}, `and ${number(rest)} more`)] : []));
  }

  function expected(one, append) {
    const what = one.begun ? `more of ${one.what}` : one.what;
    const example = one.example
      ? [", such as ", h("button", { type: "button", className: "chip", title: "append", onclick: () => append(one.example) }, visible(one.example))]
      : [];
    return h("li", {}, what, ...example, ...places(one.where));
  }

  function chip([id, piece, sort], append) {
    const label = visible(piece);
    const names = { text: `append: token ${id}`, control: `token ${id}: ends the text or is a control token`, bytes: `token ${id}: a part of a character` };
    return h("li", {}, h("button", {
      type: "button", className: `chip ${sort}`, title: names[sort], disabled: sort !== "text", "data-token": id,
      onclick: () => append(piece),
    }, label === "" ? "∅" : label));
  }

  /* What follows at the cursor. */
  function drawCursor(cursor, before, append, error) {
    const panel = byId("cursor");
    const held = panel.contains(document.activeElement);
    if (cursor === null || cursor.refused) {
      panel.replaceChildren(h("p", {}, cursor === null ? REFUSALS[error.about] || REFUSALS.other : "The text before the cursor is refused."));
      return;
    }
    const list = (items, more) => h("ul", { className: "problems" }, items, more ? h("li", { className: "soft" }, `and ${number(more)} more`) : null);
    const parts = [
      h("p", {}, h("b", {}, `${number(cursor.mask)} of ${count(cursor.vocab_size, "token")}`), " allowed after ",
        `${count(cursor.num_tokens, "token")}; the text may ${cursor.can_end ? "" : "not "}end here.`),
    ];
    if (before) parts.push(h("p", { className: "soft" }, "Before the cursor: ", quoted(visible(before[4])), ` token ${before[3]}, ${before[1]}`));
    parts.push(h("h3", {}, "Expected"), list(cursor.expected.map((one) => expected(one, append)), cursor.more));
    if (cursor.forced) {
      parts.push(h("h3", {}, "Forced next"), h("p", {}, h("button", { type: "button", className: "chip", onclick: () => append(cursor.forced) }, visible(cursor.forced)),
        cursor.forced_tokens.length ? ` as ${count(cursor.forced_tokens.length, "token")}: ` : " as no token yet: its end is open",
        ...cursor.forced_tokens.flatMap((token) => [quoted(visible(token[1])), " "])));
    }
    if (cursor.completion) {
      const ending = cursor.completion.text;
      parts.push(h("h3", {}, "Shortest completion"), h("p", {}, `${count(cursor.completion.tokens, "token")}: `,
        h("button", { type: "button", id: "complete", className: "chip", disabled: !ending, onclick: () => append(ending) }, ending ? visible(ending) : "the end")));
    }
    if (cursor.allowed.length) {
      const shown = cursor.allowed.length < cursor.mask ? `, the first ${cursor.allowed.length}` : "";
      parts.push(h("h3", {}, `Mask${shown}`), h("ul", { className: "chips", id: "allowed", "aria-label": "Allowed tokens" }, cursor.allowed.map((token) => chip(token, append))));
    }
    if (cursor.next_bytes) parts.push(h("p", { className: "soft" }, "Next bytes: ", quoted(cursor.next_bytes)));
    for (const note of cursor.notes) parts.push(h("p", { className: "soft" }, note));
    panel.replaceChildren(...parts);
    // The keyboard stays where it chose a token.
    if (held) {
      const next = panel.querySelector("#allowed .chip:not(:disabled)") || panel.querySelector("button:not(:disabled)");
      if (next) next.focus();
    }
  }

  function drawText(look, append) {
    const reading = byId("reading");
    const refused = look.refused;
    reading.className = `verdict ${refused ? "bad" : "good"}`;
    if (refused) reading.textContent = `Refused at byte ${number(refused.byte)}.`;
    else reading.textContent = look.complete ? "Accepted, and whole." : "Accepted so far.";
    if (look.more_tokens) reading.textContent += ` The first ${number(look.tokens.length)} tokens are coloured.`;
    byId("refusal").replaceChildren(...(refused ? [
      h("ul", { className: "problems" }, refused.reasons.map((one) => h("li", { className: "error" }, one.message, ...places(one.where)))),
      refused.instead.length ? h("h3", {}, "Allowed there") : null,
      refused.instead.length ? h("ul", { className: "problems" }, refused.instead.map((one) => expected(one, append))) : null,
    ].filter(Boolean) : []));
    const cost = look.cost;
    const cells = [
      ["Tokens", number(cost.tokens)], ["Forced", `${number(cost.forced)} (${percent(cost.share)})`],
      ["Forward passes", `${number(cost.passes)}, ${number(cost.forced)} saved`],
      ["Masks", `${time(cost.mask_us)}, ${time(cost.mean_mask_us)} each`], ["Accepting", time(cost.accept_us)],
    ];
    const table = byId("cost");
    table.replaceChildren(table.caption, h("thead", {}, h("tr", {}, cells.map(([name]) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, h("tr", {}, cells.map(([, value]) => h("td", {}, value)))));
  }

  function failed(place, error) {
    place.replaceChildren(h("p", { className: "error" }, error.message));
  }

  function drawDocuments(found, use) {
    const heads = ["Document", "Tokens", "Forced", "Passes saved", "Grammar"];
    byId("documents").replaceChildren(h("table", {},
      h("caption", {}, `${count(found.documents.length, "random document")} with seed ${found.seed}`),
      h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.documents.map((one) => h("tr", {},
        h("td", { className: "wide" }, h("button", { type: "button", className: "chip", title: "use as the text", onclick: () => use(one.text) },
          one.text.length > 400 ? `${one.text.slice(0, 400)}…` : one.text === "" ? "∅" : one.text)),
        h("td", {}, number(one.tokens)), h("td", {}, percent(one.share)), h("td", {}, number(one.forced)), h("td", {}, time(one.mask_us + one.accept_us)))))));
  }

  function drawGenerated(found) {
    const endings = { stop: "whole", length: "cut at the limit", cancelled: "stopped" };
    byId("generated").replaceChildren(h("p", {}, `${count(found.new_tokens, "token")}, ${number(found.forced)} of them forced, `,
      `${count(found.passes, "forward pass").replace(/passs$/, "passes")}, ${found.seconds.toFixed(2)} s, ${time(found.mask_us)} for the grammar: ${endings[found.finish_reason]}.`));
  }

  function difference(found) {
    if (!found) return "";
    if (!found.count) return "0";
    const chips = found.tokens.flatMap(([, piece]) => [" ", quoted(visible(piece))]);
    return h("span", {}, number(found.count), ":", ...chips, found.tokens.length < found.count ? " …" : "");
  }

  function drawComparison(found) {
    const heads = ["Engine", "Text", "May end", "Mask at the cursor", "Only it allows", "Only ffwd allows", "Compile", "Mask, mean"];
    byId("comparison").replaceChildren(h("table", {}, h("caption", {}, "The same text in each engine"),
      h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.rows.map((row) => {
        const name = h("th", { scope: "row" }, row.version ? `${row.name} ${row.version}` : row.name);
        const whole = row.absent ? `absent: ${row.absent}` : row.refused ? `refuses the grammar: ${row.refused}` : null;
        if (whole) return h("tr", {}, name, h("td", { className: "wide", colspan: heads.length - 1 }, whole));
        return h("tr", {}, name,
          h("td", {}, row.accepts ? "accepted" : `refused after byte ${number(row.accepted_bytes)}`),
          h("td", {}, row.can_end === undefined ? "" : row.can_end ? "yes" : "no"),
          h("td", {}, row.mask === undefined ? "refused before" : number(row.mask)),
          h("td", { className: "tokens" }, difference(row.only_it)), h("td", { className: "tokens" }, difference(row.only_ffwd)),
          h("td", {}, time(row.compile_us)), h("td", {}, time(row.mask_us)));
      }))));
  }

  return { h, byId, number, drawGrammar, drawText, drawCursor, drawDocuments, drawGenerated, drawComparison, failed };
})();
