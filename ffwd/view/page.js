"use strict";
(() => {
  const data = JSON.parse(document.getElementById("recording").textContent);
  const view = document.getElementById("view");
  const steps = data.steps;
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = ["sampled", "forced", "healed"];
  const TIMES = ["model", "mask", "accept"];
  const NAMES = {
    sampled: data.replayed ? "in the text: there was a choice" : "sampled: the model chose",
    forced: "forced: nothing else could come",
    healed: "healed: spells the end of the prompt again",
    model: "model and sampling",
    mask: "masks",
    accept: "accepting and forcing",
  };

  // Text of tokens comes into the page by textContent only.
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const draw = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const count = (number) => number.toLocaleString("en");
  const percent = (share) => {
    if (share > 0 && share < 0.0005) return "<0.1%";
    return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
  };
  const time = (ns) => {
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
    return ns < 1e9 ? `${(ns / 1e6).toFixed(1)} ms` : `${(ns / 1e9).toFixed(2)} s`;
  };
  // What would not be seen gets a sign; line ends stay what they are as well where asked.
  const visible = (text, lines = false) =>
    text
      .replace(/\r/g, "\\r")
      .replace(/\t/g, "⇥")
      .replace(/\n/g, lines ? "⏎\n" : "⏎")
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const quoted = (text, kind) => {
    if (kind !== "text") return text;
    return text === "" ? "∅" : visible(text).replace(/^ +$|^ | $/g, (s) => "␣".repeat(s.length));
  };
  const sum = (pick) => steps.reduce((total, step) => total + pick(step), 0);

  // ------------------------------------------------------------------------------ head
  const totals = TIMES.map((_, place) => sum((step) => step.n[place]));
  const of = (kind) => sum((step) => (step.k === kind ? 1 : 0));
  const asked = sum((step) => (step.a ? 1 : 0));
  const grammar = totals[1] + totals[2];
  const tile = (value, what) => make("li", {}, make("b", {}, value), make("span", {}, what));
  const tiles = make("ul", { class: "tiles" },
    tile(count(steps.length), "tokens"),
    tile(`${count(of("forced"))} (${percent(steps.length ? of("forced") / steps.length : 0)})`, "forced"));
  if (of("healed")) tiles.append(tile(count(of("healed")), "healed"));
  tiles.append(tile(count(asked), data.replayed ? "choices" : "asked of the model"));
  if (totals[0]) tiles.append(tile(time(totals[0]), "model"));
  tiles.append(tile(steps.length ? time(grammar / steps.length) : "–", "grammar, each token"));
  if (data.weight !== null) tiles.append(tile(data.weight.toFixed(2), "log weight of the text"));
  tiles.append(tile(count(data.size), "tokens in the vocabulary"));
  const legend = make("ul", { class: "legend" });
  for (const kind of KINDS) {
    if (of(kind)) legend.append(make("li", {}, make("i", { class: kind }), NAMES[kind]));
  }

  // ------------------------------------------------------------------------------ text
  const text = make("div", {
    class: "text", id: "text", tabindex: "0", role: "listbox",
    "aria-label": "The tokens; arrow keys go through them",
  });
  const spans = steps.map((step, place) => {
    const span = make("span", {
      class: `token ${step.k} ${step.s[1]}`, id: `token-${place}`, role: "option",
      "aria-selected": "false", "data-step": String(place),
    });
    span.textContent = step.s[1] === "text" ? visible(step.s[0], true) : step.s[0];
    text.append(span);
    return span;
  });
  if (data.refused) {
    const refused = make("span", { class: "refused" });
    refused.textContent = visible(data.refused, true);
    text.append(refused);
  }
  const panel = make("aside", { class: "panel", id: "panel", "aria-live": "polite" });

  // ------------------------------------------------------------------------------ one step
  const chips = (tokens, chosen) => {
    const list = make("ul", { class: "chips" });
    for (const [id, piece, kind] of tokens) {
      const chip = make("li", { title: `token ${id}` });
      if (id === chosen) chip.className = "chosen";
      chip.textContent = quoted(piece, kind);
      list.append(chip);
    }
    return list;
  };
  const describe = (place) => {
    const step = steps[place];
    const head = make("h2");
    head.textContent = `${place + 1}. `;
    const name = make("code");
    name.textContent = quoted(...step.s);
    head.append(name);
    const parts = [head];
    let said = NAMES[step.k];
    if (step.k === "healed") said += step.a ? "; the model chose how" : "; nothing else could come";
    parts.push(make("p", {}, `${said}. Token ${step.t}.`));
    const mask = step.m === null ? null : data.masks[step.m];
    if (mask) {
      parts.push(make("h3", {}, "What was allowed"));
      parts.push(make("p", { id: "allowed" },
        `${count(mask.n)} of ${count(data.size)} tokens (${percent(mask.n / data.size)})`));
      if (mask.b) {
        const bytes = make("code");
        bytes.textContent = mask.b;
        parts.push(make("p", { class: "soft" }, "beginning with ", bytes));
      }
    } else {
      parts.push(make("p", { class: "soft", id: "allowed" }, "No mask was needed."));
    }
    if (step.c.length) {
      parts.push(make("h3", {}, "What the model made of it"));
      const list = make("div", { class: "candidates" });
      for (const [id, piece, kind, probability] of step.c) {
        const code = make("code");
        code.textContent = quoted(piece, kind);
        const bar = make("div", { class: "bar" });
        bar.style.width = `${100 * probability}%`;
        const label = make("span", {}, percent(probability));
        if (id === step.t) label.style.fontWeight = "700";
        list.append(code, make("div", {}, bar), label);
      }
      parts.push(list);
    }
    if (step.q !== null) {
      parts.push(make("p", { class: "soft" },
        step.a ? `Before the mask it gave ${percent(step.q)} to what was allowed.`
          : `The model gave it ${percent(step.q)}.`));
    }
    if (step.f) {
      const code = make("code");
      code.textContent = quoted(step.f[1], step.f[2]);
      parts.push(make("p", {}, "It would have written ", code, ` (${percent(step.f[3])}), which was refused.`));
    }
    if (mask) {
      const all = mask.t.length === mask.n;
      parts.push(make("h3", {}, all ? "All of them" : `${mask.t.length} of them, from all over`));
      parts.push(chips(mask.t, step.t));
    }
    if (step.n.some(Boolean)) parts.push(make("h3", {}, "Time"));
    TIMES.forEach((kind, index) => {
      if (step.n[index]) parts.push(make("p", { class: "soft" }, `${NAMES[kind]}: ${time(step.n[index])}`));
    });
    panel.replaceChildren(...parts);
  };

  // ------------------------------------------------------------------------------ charts
  const LEFT = 58, TOP = 8, HEIGHT = 120, FOOT = 20;
  const room = Math.max(260, Math.min(820, view.clientWidth - 360));
  const width = Math.max(4, Math.min(22, (room - LEFT - 8) / Math.max(1, steps.length)));
  const whole = LEFT + width * steps.length + 8;
  const marks = [];
  const chart = (label, ticks, bars) => {
    const svg = draw("svg", {
      width: whole, height: TOP + HEIGHT + FOOT, role: "img", "aria-label": label,
      viewBox: `0 0 ${whole} ${TOP + HEIGHT + FOOT}`,
    });
    for (const [share, words] of ticks) {
      const y = TOP + HEIGHT * (1 - share);
      svg.append(draw("line", { x1: LEFT, x2: whole - 4, y1: y, y2: y, class: "grid" }));
      const tick = draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" });
      tick.textContent = words;
      svg.append(tick);
    }
    const mark = draw("rect", { class: "here", y: TOP, width, height: HEIGHT, x: -100 });
    marks.push(mark);
    svg.append(mark);
    steps.forEach((step, place) => {
      const x = LEFT + place * width;
      for (const [kind, from, to] of bars(step)) {
        svg.append(draw("rect", {
          class: `fill-${kind}`, x: x + width * 0.1, width: width * 0.8,
          y: TOP + HEIGHT * (1 - to), height: Math.max(1, HEIGHT * (to - from)),
        }));
      }
      svg.append(draw("rect", { class: "hit", x, y: TOP, width, height: HEIGHT, "data-step": place }));
    });
    const every = Math.max(1, Math.round(60 / width / 5) * 5);
    for (let place = 0; place < steps.length; place += every) {
      const tick = draw("text", {
        x: LEFT + (place + 0.5) * width, y: TOP + HEIGHT + 15, "text-anchor": "middle",
      });
      tick.textContent = String(place + 1);
      svg.append(tick);
    }
    return make("div", { class: "chart" }, svg);
  };
  const most = Math.log10(Math.max(10, data.size));
  const decades = [];
  for (let power = 0; power <= most; power += most > 4 ? 2 : 1) {
    decades.push([power / most, count(10 ** power)]);
  }
  const allowed = (step) => (step.m === null ? 0 : data.masks[step.m].n);
  const sizes = chart("How many tokens the mask let through, logarithmic", decades, (step) => {
    const number = allowed(step);
    // One token has no logarithm to show, and no mask none at all.
    return [[step.k, 0, number > 1 ? Math.log10(number) / most : 0.012]];
  });
  sizes.id = "sizes";
  const longest = Math.max(1, ...steps.map((step) => step.n[0] + step.n[1] + step.n[2]));
  const times = chart("Where the time of each token went", [0, 0.5, 1].map((s) => [s, time(s * longest)]),
    (step) => {
      let from = 0;
      return TIMES.map((kind, index) => {
        const bar = [kind, from / longest, (from + step.n[index]) / longest];
        from += step.n[index];
        return bar;
      }).filter((bar) => bar[2] > bar[1]);
    });
  times.id = "times";
  const all = totals[0] + grammar;
  const share = make("div", { class: "share", role: "img", "aria-label": "Shares of the time" });
  const shares = make("ul", { class: "legend" });
  TIMES.forEach((kind, index) => {
    if (!totals[index]) return;
    const part = make("div", { class: `swatch-${kind}` });
    part.style.width = `${(100 * totals[index]) / all}%`;
    share.append(part);
    const each = steps.length ? `, ${time(totals[index] / steps.length)} a token` : "";
    shares.append(make("li", {}, make("i", { class: `swatch-${kind}` }),
      `${NAMES[kind]}: ${time(totals[index])} (${percent(totals[index] / all)}${each})`));
  });

  // ------------------------------------------------------------------------------ prompt, table
  const prompt = make("details");
  if (data.prompt.length) {
    const shown = make("div", { class: "text" });
    if (data.hidden) shown.append(make("span", { class: "soft" }, `${count(data.hidden)} tokens before … `));
    const add = (piece, kind, name) => {
      const span = make("span", { class: `${kind} ${name}` });
      span.textContent = kind === "text" ? visible(piece, true) : piece;
      // The class `text` is the box's.
      span.classList.remove("text");
      shown.append(span);
    };
    for (const [piece, kind] of data.prompt) add(piece, kind, "");
    for (const [piece, kind] of data.back) add(piece, kind, "refused");
    prompt.append(make("summary", {}, `The prompt: ${count(data.prompt.length + data.hidden)} tokens`), shown);
    if (data.back.length) {
      prompt.append(make("p", { class: "soft" }, `The last ${data.back.length} were taken back and are healed.`));
    }
  }
  const table = make("details", {}, make("summary", {}, "All tokens as a table"));
  table.addEventListener("toggle", () => {
    if (!table.open || table.querySelector("table")) return;
    const head = make("tr", {}, ...["", "token", "kind", "allowed", ...TIMES].map((s) => make("th", {}, s)));
    const body = make("tbody");
    steps.forEach((step, place) => {
      const cell = make("td");
      cell.textContent = quoted(...step.s);
      body.append(make("tr", {}, make("td", {}, String(place + 1)), cell, make("td", {}, step.k),
        make("td", {}, step.m === null ? "" : count(allowed(step))),
        ...step.n.map((ns) => make("td", {}, ns ? time(ns) : ""))));
    });
    table.append(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body)));
  });

  // ------------------------------------------------------------------------------ together
  const title = make("h1");
  title.textContent = data.title || "A generation";
  const refusal = make("p", { class: "refusal", id: "refusal" });
  if (data.refusal) refusal.textContent = data.refusal;
  const left = make("div", { class: "columns" },
    make("div", { class: "first" }, text, ...(data.refusal ? [refusal] : [])),
    panel,
    make("div", { class: "second" }, make("h2", {}, "How many tokens the mask let through"), sizes,
    make("h2", {}, "Where the time went"), share, shares, times,
    ...(data.prompt.length ? [prompt] : []), table));
  view.replaceChildren(title, tiles, legend, left);

  let current = -1;
  let pinned = false;
  const show = (place, scroll) => {
    if (place < 0 || place >= steps.length) return;
    if (current >= 0) {
      spans[current].classList.remove("current");
      spans[current].setAttribute("aria-selected", "false");
    }
    current = place;
    spans[place].classList.add("current");
    spans[place].setAttribute("aria-selected", "true");
    text.setAttribute("aria-activedescendant", spans[place].id);
    for (const mark of marks) mark.setAttribute("x", String(LEFT + place * width));
    describe(place);
    if (scroll) spans[place].scrollIntoView({ block: "nearest" });
  };
  const stepOf = (event) => {
    const found = event.target.closest("[data-step]");
    return found ? Number(found.getAttribute("data-step")) : -1;
  };
  // Hovering shows a token; a click or a tap keeps it until the next click.
  left.addEventListener("pointerover", (event) => {
    const place = stepOf(event);
    if (place >= 0 && !pinned) show(place, false);
  });
  left.addEventListener("click", (event) => {
    const place = stepOf(event);
    if (place < 0) return;
    pinned = !(pinned && place === current);
    show(place, event.target.closest("svg") !== null);
  });
  text.addEventListener("keydown", (event) => {
    const moves = {
      ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1, ArrowUp: current - 1,
      Home: 0, End: steps.length - 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pinned = true;
    show(moves[event.key], true);
  });
  const first = steps.findIndex((step) => step.a);
  if (steps.length) show(Math.max(0, first), false);
  else panel.textContent = "No tokens.";
})();
