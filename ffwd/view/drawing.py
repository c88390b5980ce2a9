"""The SVG of a `StateGraph`: states on a line, forward edges above it, and edges back below."""

from __future__ import annotations

import html
from dataclasses import dataclass

from ffwd.view.states import GraphEdge, StateGraph

_RADIUS = 22
_MARGIN = 28
_LANE = 34
_CHARACTER = 7.3
_MOST_LABEL = 28
_VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"})

_STYLE = """
text { font: 12px system-ui, "Segoe UI", "Liberation Sans", sans-serif; text-anchor: middle; }
text { fill: #1b1f24; }
.title { font-size: 14px; font-weight: 600; text-anchor: start; }
.note { font-size: 12px; fill: #5a6472; text-anchor: start; }
.label { font-family: ui-monospace, "DejaVu Sans Mono", "Liberation Mono", Menlo, monospace; }
.label { paint-order: stroke; stroke: #fff; stroke-width: 4px; }
.size { font-size: 9px; fill: #5a6472; }
.paper { fill: #fff; }
circle { fill: #f6f7f9; stroke: #5a6472; stroke-width: 1.5; }
circle.shared { fill: #cdeed6; stroke: #1d7f3f; }
path { fill: none; stroke: #2563c9; stroke-width: 1.6; }
path.again { stroke: #1d7f3f; stroke-width: 2.2; }
marker path { fill: #2563c9; stroke: none; }
marker path.again { fill: #1d7f3f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e7eaee; } .note, .size { fill: #a0abb8; }
  .label { stroke: #14171b; } .paper { fill: #14171b; }
  circle { fill: #1d2127; stroke: #a0abb8; } circle.shared { fill: #1a4429; stroke: #6fd491; }
  path { stroke: #7db1ff; } path.again { stroke: #6fd491; }
  marker path { fill: #7db1ff; } marker path.again { fill: #6fd491; }
}
"""


@dataclass(frozen=True)
class _Arc:
    """An edge with its label and the lane that it takes; lanes below the line are negative."""

    edge: GraphEdge
    label: str
    lane: int


def drawn(graph: StateGraph) -> str:
    """Return the document; whatever comes from a text or a tokenizer is escaped."""
    labels = {(one.source, one.target): _label(graph, one) for one in graph.edges}
    lefts = _columns(graph, labels)
    arcs = _arcs(graph, labels)
    above = max([arc.lane for arc in arcs if arc.lane > 0], default=0)
    below = max([-arc.lane for arc in arcs if arc.lane < 0], default=0)
    line = 62 + _LANE * above + _RADIUS + 14
    notes = _notes(graph)
    bottom = line + _RADIUS + 8 + _LANE * below + (12 if below else 0)
    height = bottom + 18 * len(notes) + 12
    widest = max([len(graph.title) * 8.5, *(len(note) * 6.6 for note in notes)])
    width = max(lefts[-1] + _MARGIN + _RADIUS, widest + 2 * _MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}" role="img"'
        f' aria-label="{_escaped(_said(graph))}">',
        f"<style>{_STYLE}</style>",
        "<defs>",
        _arrow("arrow", ""),
        _arrow("arrow-again", "again"),
        "</defs>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
    ]
    if graph.title:
        parts.append(f'<text class="title" x="{_MARGIN}" y="28">{_escaped(graph.title)}</text>')
    parts += [_edge(arc, lefts, line) for arc in arcs]
    parts += [_state(graph, place, lefts[place], line) for place in range(len(graph.states))]
    parts += [_name(arc, lefts, line) for arc in arcs]
    parts += [
        f'<text class="note" x="{_MARGIN}" y="{bottom + 18 * row:.0f}">{_escaped(note)}</text>'
        for row, note in enumerate(notes, 1)
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _label(graph: StateGraph, edge: GraphEdge) -> str:
    shown: list[str] = []
    for token in edge.tokens:
        shown.append(graph.labels[token].translate(_VISIBLE))
        if sum(map(len, shown)) + 3 * len(shown) > _MOST_LABEL and len(shown) < len(edge.tokens):
            return " | ".join(shown)[:_MOST_LABEL] + " …"
    text = " | ".join(shown)
    text = text if len(text) <= _MOST_LABEL + 2 else text[:_MOST_LABEL] + "…"
    return text + (f"  ({edge.count}×)" if edge.count > 1 else "")  # noqa: RUF001


def _columns(graph: StateGraph, labels: dict[tuple[int, int], str]) -> list[float]:
    """Return the x of each state, far enough apart for the labels of edges."""
    lefts = [float(_MARGIN + _RADIUS)]
    for place in range(1, len(graph.states)):
        between = _CHARACTER * len(labels.get((place - 1, place), "")) + 34
        loop = _CHARACTER * max(len(labels.get((at, at), "")) for at in (place - 1, place)) + 10
        lefts.append(lefts[-1] + 2 * _RADIUS + max(52, between, loop - 2 * _RADIUS))
    return lefts


def _arcs(graph: StateGraph, labels: dict[tuple[int, int], str]) -> list[_Arc]:
    """Return the edges with lanes: shorter ones nearer to the line, none across another."""
    taken: list[tuple[int, int, int]] = []
    arcs = []
    for edge in sorted(graph.edges, key=lambda one: abs(one.target - one.source)):
        low, high = sorted((edge.source, edge.target))
        side = 1 if edge.target >= edge.source else -1
        lane = 0
        if edge.target != edge.source + 1:
            lane = side
            while any(
                place == lane
                and low < other_high + (low == high)
                and other_low < high + (low == high)
                for place, other_low, other_high in taken
            ):
                lane += side
            taken.append((lane, low, high))
        arcs.append(_Arc(edge, labels[edge.source, edge.target], lane))
    return arcs


def _edge(arc: _Arc, lefts: list[float], line: float) -> str:
    source, target = lefts[arc.edge.source], lefts[arc.edge.target]
    again = arc.edge.target <= arc.edge.source
    arrow = "arrow-again" if again else "arrow"
    name = ' class="again"' if again else ""
    if arc.lane == 0:
        track = f"M{source + _RADIUS:.1f} {line:.1f}H{target - _RADIUS - 5:.1f}"
    elif arc.edge.source == arc.edge.target:
        top = _level(arc, line)
        track = (
            f"M{source - 9:.1f} {line - _RADIUS + 2:.1f}C{source - 26:.1f} {top - 8:.1f}"
            f" {source + 26:.1f} {top - 8:.1f} {target + 10:.1f} {line - _RADIUS - 3:.1f}"
        )
    else:
        level = _level(arc, line)
        side = -1 if arc.lane > 0 else 1
        start, end = line + side * _RADIUS, line + side * (_RADIUS + 5)
        bend = 14 if target > source else -14
        track = (
            f"M{source + bend / 2:.1f} {start - side * 1.5:.1f}Q{source + bend / 2:.1f} {level:.1f}"
            f" {source + 2 * bend:.1f} {level:.1f}H{target - 2 * bend:.1f}"
            f"Q{target - bend / 2:.1f} {level:.1f} {target - bend / 2:.1f} {end:.1f}"
        )
    return f'<path d="{track}"{name} marker-end="url(#{arrow})"/>'


def _level(arc: _Arc, line: float) -> float:
    """Return the y of a lane."""
    if arc.lane > 0:
        return line - _RADIUS - 10 - _LANE * arc.lane + 8
    return line + _RADIUS + 26 - _LANE * (arc.lane + 1)


def _name(arc: _Arc, lefts: list[float], line: float) -> str:
    x = (lefts[arc.edge.source] + lefts[arc.edge.target]) / 2
    level = line - 6 if arc.lane == 0 else _level(arc, line) + (-4 if arc.lane > 0 else 14)
    return f'<text class="label" x="{x:.1f}" y="{level:.1f}">{_escaped(arc.label)}</text>'


def _state(graph: StateGraph, place: int, x: float, line: float) -> str:
    state = graph.states[place]
    shared = ' class="shared"' if state.visits > 1 else ""
    how = "computed" if state.computed else "copied"
    title = (
        f"state {place}: {state.allowed:,} of {graph.vocab_size:,} tokens allowed; visited"
        f" {_times(state.visits)}; the mask was {how} at the first visit"
    )
    parts = [
        f"<g><title>{title}</title>",
        f'<circle{shared} cx="{x:.1f}" cy="{line:.1f}" r="{_RADIUS}"/>',
    ]
    if state.accepting:
        parts.append(f'<circle{shared} cx="{x:.1f}" cy="{line:.1f}" r="{_RADIUS - 4}"/>')
    parts.append(f'<text x="{x:.1f}" y="{line:.1f}">{place}</text>')
    size = f'<text class="size" x="{x:.1f}" y="{line + 11:.1f}">{state.allowed:,}</text>'
    return "".join([*parts, size, "</g>"])


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _said(graph: StateGraph) -> str:
    tokens = len(graph.path) - 1
    return (
        f"{graph.title or 'A text'}: {tokens:,} token{'' if tokens == 1 else 's'},"
        f" {len(graph.states):,} states, {graph.shared:,} visits shared"
    )


def _notes(graph: StateGraph) -> list[str]:
    computed = sum(state.computed for state in graph.states)
    copied = len(graph.path) - computed
    notes = [
        f"{len(graph.path):,} visits of {len(graph.states):,} states:"
        f" {graph.shared:,} found their state from an earlier visit (green).",
        f"{computed:,} masks computed, {copied:,} copied. The small number of a state is the size"
        " of its mask; a double circle may end the text.",
    ]
    if graph.refused:
        refused = graph.refused.decode(errors="backslashreplace")
        notes.append(f"Refused from here: {refused[:80].translate(_VISIBLE)}")
    return notes


def _arrow(name: str, kind: str) -> str:
    shape = f'<path class="{kind}" d="M0 0L8 4L0 8z"/>' if kind else '<path d="M0 0L8 4L0 8z"/>'
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7"'
        f' markerUnits="userSpaceOnUse" orient="auto">{shape}</marker>'
    )


def _escaped(text: str) -> str:
    """Return text for XML, which has no other control characters than these."""
    return html.escape("".join(c if c in "\n\t" or c.isprintable() else _code(c) for c in text))


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
