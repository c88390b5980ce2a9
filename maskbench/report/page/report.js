"use strict";
// Tables sort and filter, plots say what is under the pointer. Text is only ever set as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";

  // ------------------------------------------------------------------------------------- tables

  const keyOf = (cell) => {
    if (!("value" in cell.dataset)) return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

  function sort(table, index) {
    const head = table.tHead.rows[0].cells;
    const ascending = head[index].getAttribute("aria-sort") !== "ascending";
    for (const cell of head) cell.removeAttribute("aria-sort");
    head[index].setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row.cells[index]), row]);
    rows.sort(([a], [b]) => {
      // What is missing comes last either way.
      if (a === null || b === null) return (a === null) - (b === null);
      return ascending ? compare(a, b) : compare(b, a);
    });
    body.append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, index) =>
      cell.firstElementChild.addEventListener("click", () => {
        if (table.tBodies[0].rows[0].cells.length === table.tHead.rows[0].cells.length) sort(table, index);
      }));
  }
  for (const filter of document.querySelectorAll(".filter")) {
    const rows = [...filter.parentElement.querySelector("tbody").rows];
    filter.querySelector("input").addEventListener("input", (event) => {
      const wanted = event.target.value.toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      filter.querySelector("output").textContent = `${shown} of ${rows.length}`;
    });
  }

  // -------------------------------------------------------------------------------------- plots

  const time = (us) => {
    const [value, unit] = us >= 1e6 ? [us / 1e6, "s"] : us >= 1e3 ? [us / 1e3, "ms"] : [us, "µs"];
    return `${Number(value.toPrecision(3))} ${unit}`;
  };
  const place = (axis, exponent) =>
    axis.start + ((exponent - axis.low) / (axis.high - axis.low)) * (axis.stop - axis.start);

  function showTip(lines, x, y) {
    tip.replaceChildren(...lines.map((text, index) => {
      const line = document.createElement(index ? "div" : "b");
      line.textContent = text;
      return line;
    }));
    tip.hidden = false;
    const width = document.documentElement.clientWidth;
    const right = window.scrollX + width - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(window.scrollX + 8, Math.min(x + 14, right))}px`;
    tip.style.top = `${y + 16}px`;
  }
  function mark(svg, shapes) {
    svg.querySelector(".cursor").replaceChildren(...shapes.map(([name, attributes]) => {
      const shape = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      return shape;
    }));
  }
  function hide(svg) {
    tip.hidden = true;
    mark(svg, []);
  }
  // To where a point of the box is on the page, and back.
  function frame(svg) {
    const rect = svg.getBoundingClientRect();
    const scale = rect.width / svg.viewBox.baseVal.width;
    return {
      scale,
      toBox: (event) => [(event.clientX - rect.left) / scale, (event.clientY - rect.top) / scale],
      toPage: (x, y) => [rect.left + x * scale + window.scrollX, rect.top + y * scale + window.scrollY],
    };
  }
  function listen(svg, at, step) {
    svg.addEventListener("pointermove", (event) => at(...frame(svg).toBox(event)));
    svg.addEventListener("pointerdown", (event) => at(...frame(svg).toBox(event)));
    svg.addEventListener("pointerleave", () => hide(svg));
    svg.addEventListener("blur", () => hide(svg));
    svg.addEventListener("keydown", (event) => {
      const direction = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (direction) {
        event.preventDefault();
        step(direction);
      } else if (event.key === "Escape") hide(svg);
    });
  }

  for (const svg of document.querySelectorAll("svg[data-curves]")) {
    const { x, y, lines } = data.curves[svg.dataset.curves];
    let current = 0;
    const show = (nines) => {
      current = Math.max(x.low, Math.min(x.high, nines));
      const digits = Math.max(0, Math.ceil(current) - 1);
      const text = [`percentile ${(100 * (1 - 10 ** -current)).toFixed(digits)}`];
      const px = place(x, current);
      const shapes = [["line", { x1: px, x2: px, y1: y.start, y2: y.stop }]];
      for (const line of lines) {
        const point = line.points.find(([at]) => at >= current - 1e-6);
        if (!point) continue;
        text.push(`${line.engine}: ${time(point[1])}`);
        const cy = place(y, Math.log10(Math.max(point[1], 1e-3)));
        shapes.push(["circle", { cx: px, cy, r: 4.5, class: `e${line.number % 8}` }]);
      }
      mark(svg, shapes);
      showTip(text, ...frame(svg).toPage(px, (y.start + y.stop) / 2));
    };
    listen(
      svg,
      (px) => show(x.low + ((px - x.start) / (x.stop - x.start)) * (x.high - x.low)),
      (direction) => show(current + direction * 0.1),
    );
  }

  for (const svg of document.querySelectorAll("svg[data-scatter]")) {
    const { subject, peer, x, y, ids, xs, ys } = data.scatters[svg.dataset.scatter];
    const px = xs.map((us) => place(x, Math.log10(us)));
    const py = ys.map((us) => place(y, Math.log10(us)));
    const order = ids.map((_, index) => index).sort((a, b) => px[a] - px[b]);
    let current = -1;
    const show = (index) => {
      mark(svg, [["circle", { cx: px[index], cy: py[index], r: 6 }]]);
      const ratio = Number((xs[index] / ys[index]).toPrecision(3));
      showTip(
        [ids[index], `${subject}: ${time(ys[index])}`, `${peer}: ${time(xs[index])}`, `${peer} takes ${ratio} times as long`],
        ...frame(svg).toPage(px[index], py[index]),
      );
    };
    listen(
      svg,
      (bx, by) => {
        let best = -1;
        let least = (18 / frame(svg).scale) ** 2;
        for (let index = 0; index < px.length; index++) {
          const distance = (px[index] - bx) ** 2 + (py[index] - by) ** 2;
          if (distance < least) [best, least] = [index, distance];
        }
        if (best < 0) return hide(svg);
        current = order.indexOf(best);
        return show(best);
      },
      (direction) => {
        current = Math.max(0, Math.min(order.length - 1, current + direction));
        show(order[current]);
      },
    );
  }
})();
