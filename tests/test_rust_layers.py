"""Which modules of a crate may use which. The table is the rule; `docs/architecture.md` says why.

The test reads the text of the crates, tests included: what crosses layers belongs into the `tests/`
of a crate, or `tests/`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NATIVE = Path(__file__).resolve().parent.parent / "ffwd/native"

# The manifests say which crate may use which, and the compiler checks it. Within a crate that has
# several layers: module -> the modules that it may use besides itself; lowest first.
RUST_LAYERS: dict[str, dict[str, frozenset[str]]] = {
    "bounds": {
        "error": frozenset(),
        # Atomics of the process.
        "section": frozenset(),
        "limits": frozenset(),
        # What one call may use; any layer charges it.
        "meter": frozenset({"error", "limits"}),
    },
    "regular": {"regex": frozenset(), "expr": frozenset({"regex"})},
    "tokenizer": {
        "vocabulary": frozenset(),
        # Token ids to text, which needs the bytes of tokens and nothing else.
        "streaming": frozenset({"vocabulary"}),
        # One piece of text; what cuts a text into pieces is not its business.
        "bpe": frozenset({"vocabulary"}),
        # Text to pieces; knows no tokens.
        "pretokenizer": frozenset(),
        "tokenizer": frozenset({"vocabulary", "bpe", "pretokenizer"}),
        # The text of a tokenizer.json, as the other two.
        "huggingface": frozenset({"vocabulary", "bpe", "pretokenizer", "tokenizer"}),
        # Which tokens a text can have; of grammars it knows one trait.
        "canonical": frozenset({"vocabulary", "bpe", "pretokenizer", "tokenizer"}),
    },
    "automaton": {
        "error": frozenset(),
        "writing": frozenset(),
        # Values that are held once, and what they weigh.
        "interning": frozenset(),
        # Frames, and threads on them; what a frame means is asked through the trait `On`.
        "stacks": frozenset({"error", "interning"}),
        # Two kinds of meaning, which know nothing of each other.
        "json": frozenset({"error", "writing", "interning", "stacks"}),
        "rules": frozenset({"error", "interning", "stacks"}),
        # Configurations: the only layer that has both.
        "run": frozenset({"error", "writing", "interning", "stacks", "json", "rules"}),
        # Short texts to the end.
        "completion": frozenset({"error", "interning", "stacks", "json", "rules", "run"}),
        # In words, for people.
        "explain": frozenset({"error", "stacks", "json", "rules", "run"}),
    },
    "engine": {
        # Bits and numbers.
        "logits": frozenset(),
        # The only place where automaton and vocabulary meet.
        "mask": frozenset(),
        # What becomes certain of a text; knows neither tokens nor who asks.
        "events": frozenset(),
        # A grammar and a vocabulary, compiled for each other.
        "engine": frozenset({"mask"}),
        "matcher": frozenset({"mask", "events", "engine"}),
        # In words, what the automaton knows of a text.
        "explain": frozenset({"engine", "matcher"}),
        # What is saved of a grammar is what it was compiled from.
        "saved": frozenset({"engine", "matcher"}),
        "fast_forward": frozenset({"mask", "engine", "matcher"}),
        # What an engine asks of a matcher in every step.
        "request": frozenset({"mask", "engine", "matcher", "fast_forward"}),
    },
}

_NOT_CODE = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | \b(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    | \b(?:b|c)?"(?:\\.|[^"\\])*"
    | "(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'
    """,
    re.DOTALL | re.VERBOSE,
)
_PATH_START = re.compile(r"(?<![\w:])(crate|super)\s*::\s*")
_WORD = re.compile(r"\w+")
_STEP = re.compile(r"\s*::\s*(?=[\w{*])")
_BETWEEN = re.compile(r"(?:\s+as\s+\w+|[\s,])*")


def rust_paths(source: str, module: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """The paths from the root of the crate that some code names, with the line.

    `module` is the path of the module that the code is in, `("regex", "ast")`.
    """
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    # Inline modules (`mod tests {`) are one deeper, so each `super` may mean one more level.
    for start in _PATH_START.finditer(code):
        line = code.count("\n", 0, start.start()) + 1
        position = start.end()
        base: tuple[str, ...] = ()
        if start[1] == "super":
            level = 1
            while (again := re.compile(r"super\s*::\s*").match(code, position)) is not None:
                level += 1
                position = again.end()
            level -= inline_depth(code, start.start())
            base = module[: max(len(module) - max(level, 0), 0)]
        for path in paths_at(code, position)[0]:
            yield (*base, *path), line


def rust_uses(source: str, module: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The top-level modules of the crate that some code names, with the line."""
    for path, line in rust_paths(source, module):
        yield path[0], line


def inline_depth(code: str, position: int) -> int:
    """In how many `mod name { … }` a position is."""
    depth = 0
    for match in re.compile(r"\bmod\s+\w+\s*\{").finditer(code, 0, position):
        braces = 1
        for character in code[match.end() : position]:
            braces += (character == "{") - (character == "}")
            if braces == 0:
                break
        depth += braces > 0
    return depth


def past(pattern: re.Pattern[str], code: str, position: int) -> int:
    """The position after what a pattern matches there, if anything."""
    match = pattern.match(code, position)
    return position if match is None else match.end()


def paths_at(code: str, position: int) -> tuple[list[tuple[str, ...]], int]:
    """The paths from a position on, `a::b` or those of `{a::b, c::{d, e}}`, and where they end."""
    if code[position : position + 1] == "{":
        found = []
        position = past(_BETWEEN, code, position + 1)
        while code[position : position + 1] not in ("}", ""):
            more, position = paths_at(code, position)
            found += more
            position = past(_BETWEEN, code, position)
        return found, position + 1
    word = _WORD.match(code, position)
    if word is None:
        return [(code[position : position + 1],)], position + 1
    step = _STEP.match(code, word.end())
    if step is None:
        return [(word[0],)], word.end()
    below, end = paths_at(code, step.end())
    return [(word[0], *path) for path in below], end


def rust_violations(
    source: str, module: tuple[str, ...], layers: Mapping[str, frozenset[str]]
) -> list[str]:
    """What the code of a module uses against the layers of its crate."""
    own = module[0]
    allowed = layers.get(own)
    if allowed is None:
        return [f"{own}: not in RUST_LAYERS; decide on whom it may use"]
    return [
        f"{'::'.join(module)}:{line} uses crate::{used}"
        for used, line in rust_uses(source, module)
        if used != own and used not in allowed
    ]


_ELSEWHERE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]\s*(?:pub\s*(?:\([^)]*\)\s*)?)?mod\s+(\w+)\s*;')


def rust_modules(root: Path) -> list[tuple[tuple[str, ...], Path]]:
    """Every module below a top-level one, with its file; `lib.rs` only lists those."""
    found = {}
    for path in sorted(root.rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts != ("lib",):
            found[path] = tuple(part for part in parts if part != "mod")
    # `#[path = "ecma_tests.rs"] mod tests;` in ecma.rs is ecma::tests, wherever its file lies.
    for path, module in list(found.items()):
        for file, name in _ELSEWHERE.findall(path.read_text(encoding="utf-8")):
            found[path.parent / file] = (*module, name)
    return [(module, path) for path, module in found.items()]


@pytest.mark.parametrize("crate", RUST_LAYERS)
def test_rust_modules_keep_to_their_layer(crate: str) -> None:
    """The code on disk."""
    modules = rust_modules(NATIVE / "crates" / crate / "src")
    assert {module[0] for module, _ in modules} == set(RUST_LAYERS[crate])
    found = [
        violation
        for module, path in modules
        for violation in rust_violations(
            path.read_text(encoding="utf-8"), module, RUST_LAYERS[crate]
        )
    ]
    assert not found, "\n".join(found)


def manifest(path: Path) -> dict[str, Any]:
    """The `Cargo.toml` of a crate."""
    return tomllib.loads((path / "Cargo.toml").read_text(encoding="utf-8"))


def test_only_the_root_of_the_workspace_knows_python() -> None:
    """The crates below build and are tested without an interpreter."""
    crates = sorted(path for path in (NATIVE / "crates").iterdir() if path.is_dir())
    assert "pyo3" in manifest(NATIVE)["dependencies"]
    for crate in crates:
        asked = manifest(crate)["dependencies"]
        assert not {"pyo3", "numpy", "ffwd-native"} & set(asked), crate.name


def test_a_module_may_lie_in_a_file_of_another_name(tmp_path: Path) -> None:
    """Its `super` counts from its place among the modules."""
    (tmp_path / "regex").mkdir()
    (tmp_path / "regex/ecma.rs").write_text('#[cfg(test)]\n#[path = "far.rs"]\nmod tests;')
    (tmp_path / "regex/far.rs").write_text("use super::super::oracle;")
    modules = {module for module, _ in rust_modules(tmp_path)}
    assert modules == {("regex", "ecma"), ("regex", "ecma", "tests")}


@pytest.mark.parametrize("crate", RUST_LAYERS)
def test_the_root_of_a_crate_with_layers_only_lists_them(crate: str) -> None:
    """Code in `lib.rs` would be below every layer and free to use all of them."""
    source = NATIVE / "crates" / crate / "src/lib.rs"
    code = _NOT_CODE.sub("", source.read_text(encoding="utf-8"))
    statements = re.sub(r"#!?\[[^\]]*\]", "", code).split()
    assert re.fullmatch(r"(?:(?:pub )?(?:mod|use) [^;{}]+; ?)+", " ".join(statements)), code


def test_rust_layers_have_no_cycle() -> None:
    """The table names lower layers first, so whoever may use whom is acyclic."""
    for layers in RUST_LAYERS.values():
        order = list(layers)
        for index, layer in enumerate(order):
            assert layers[layer] <= set(order[:index]), layer


def import_circles(modules: Mapping[tuple[str, ...], str]) -> list[list[tuple[str, ...]]]:
    """The modules that import each other in a circle, by circle; `modules` has their code."""
    imports: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, source in modules.items():
        code = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", source)[0]
        found = imports.setdefault(module, set())
        for path, _ in rust_paths(code, module):
            ends = range(len(path), 0, -1)
            found.update(next(([path[:end]] for end in ends if path[:end] in modules), []))

    def reached(start: tuple[str, ...]) -> set[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        pending = [start]
        while pending:
            fresh = imports[pending.pop()] - seen
            seen |= fresh
            pending += fresh
        return seen

    within = {module: reached(module) for module in modules}
    circles = {
        tuple(sorted(other for other in within[module] if module in within[other]))
        for module in modules
        if module in within[module]
    }
    return sorted((list(circle) for circle in circles if len(circle) > 1), key=len)


# The most files of a crate that import each other in a circle.
MAX_CIRCLE = {"automaton": 4}


@pytest.mark.parametrize("crate", MAX_CIRCLE)
def test_rust_files_import_each_other_in_small_circles_only(crate: str) -> None:
    """Code is understood a circle at a time."""
    modules = {
        module: path.read_text(encoding="utf-8")
        for module, path in rust_modules(NATIVE / "crates" / crate / "src")
        if not any("test" in part for part in module)
    }
    assert len(modules) > 50
    large = [circle for circle in import_circles(modules) if len(circle) > MAX_CIRCLE[crate]]
    assert not large, large


def test_import_circles_are_found() -> None:
    """Of any length, through folders, `super` and braces, and not through tests."""
    modules = {
        ("a",): "use crate::b::{inner::{B, C}, other as o};",
        ("b",): "",
        ("b", "inner"): "use super::super::c;",
        ("c",): "fn f() -> crate :: a :: A { crate::d::<u8>() }",
        ("d",): "#[cfg(test)]\nmod tests {\n    use super::super::c;\n}",
        ("e",): "use super::f::F;",
        ("f",): "use crate::e;",
    }
    assert import_circles(modules) == [[("e",), ("f",)], [("a",), ("b", "inner"), ("c",)]]


# The most methods of one type of a crate. Types are told apart by their names.
MAX_METHODS = {"automaton": 60}
_IMPL = re.compile(r"^(?:impl|(?:pub(?:\([^)]*\))? )?trait)\b(?:<[^{]*?>)? *(\w+)([^{;]*)\{", re.M)


def methods_of(code: str) -> Iterator[tuple[str, int]]:
    """The types of a file that has been formatted, each with the methods of one block of it."""
    for match in _IMPL.finditer(code):
        if re.search(r"\bfor\b", match[2]) is None:
            block = code[match.end() : code.index("\n}", match.end() - 1)]
            yield (
                match[1],
                len(re.findall(r"^    (?:pub(?:\([^)]*\))? )?(?:const )?fn ", block, re.M)),
            )


@pytest.mark.parametrize("crate", MAX_METHODS)
def test_no_rust_type_has_too_many_methods(crate: str) -> None:
    """What a type with more of them does is several things."""
    counts: Counter[str] = Counter()
    for _, path in rust_modules(NATIVE / "crates" / crate / "src"):
        for name, number in methods_of(path.read_text(encoding="utf-8")):
            counts[name] += number
    assert counts
    most = MAX_METHODS[crate]
    assert not {name: number for name, number in counts.items() if number > most}


def test_methods_are_counted() -> None:
    """Those of all blocks of a type and of a trait, and not what a type has by a trait."""
    code = (
        "impl<O: On> Handle<'_, O> {\n    fn a(&self) {\n    }\n    pub(crate) fn b() {}\n}\n"
        "impl Handle<'_, u8> {\n    pub const fn c() {}\n}\n"
        "impl Clone for Handle<'_, u8> {\n    fn clone(&self) -> Self {}\n}\n"
        "pub trait On: Sized {\n    fn d(&self);\n}\n"
    )
    assert list(methods_of(code)) == [("Handle", 2), ("Handle", 1), ("On", 1)]


# What the rule is tried with.
LAYERS = {
    "regex": frozenset[str](),
    "vocabulary": frozenset[str](),
    "automaton": frozenset({"regex"}),
    "mask": frozenset({"vocabulary", "automaton"}),
}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("regex", "ast"), "use crate::automaton::State;"),
        (("regex", "ast"), "use crate::{\n    regex::Ast,\n    mask::{Mask, vocabulary},\n};"),
        (("regex", "ast"), "fn f() -> crate :: vocabulary :: Trie { todo!() }"),
        (("regex", "ast"), "use super::super::matcher;"),
        (("regex",), "use super::vocabulary::Trie;"),
        (("regex", "ast"), "mod tests {\n    use super::super::super::expr::Store;\n}"),
        (("automaton", "state"), "pub use crate::mask as m;"),
        (("automaton",), "use crate::vocabulary::TokenId;"),
        (("automaton",), "use crate::matcher::Matcher;"),
        (("mask",), "use crate::*;"),
        (("novel",), ""),
    ],
)
def test_rust_violations_are_seen(module: tuple[str, ...], source: str) -> None:
    """The rule can fail."""
    assert rust_violations(source, module, LAYERS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("regex", "ast"), "use super::Ast;\nuse crate::regex::{class, Ast};"),
        (("regex", "ast"), "mod tests {\n    use super::super::Ast;\n    use super::*;\n}"),
        (("regex",), '// use crate::mask;\n/* crate::mask::x */ let s = "crate::mask";'),
        (
            ("regex",),
            "let s = r#\"a \" crate::mask\"#; let c = '\"'; let d = b'\\''; let l: &'a X;",
        ),
        (("mask",), "use crate::{automaton::{self, StateId}, vocabulary::Trie};"),
        (("regex",), "pub(crate) fn f() {} mycrate::mask::x();"),
    ],
)
def test_rust_permissions_are_seen(module: tuple[str, ...], source: str) -> None:
    """The rule does not forbid everything."""
    assert rust_violations(source, module, LAYERS) == []
