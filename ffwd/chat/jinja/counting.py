"""Rewriting of a template that counts operations for which Jinja has no hook."""

# ruff: noqa: N802
# Jinja calls these methods by the names of its nodes.

from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.visitor import NodeTransformer

_EQUALITY = frozenset({"eq", "ne", "lt", "lteq", "gt", "gteq"})


def count(tree: nodes.Template, environment: jinja2.Environment) -> nodes.Template:
    """Return the tree with calls of the environment.

    `count` in each round of a loop, `sliced` for slices, `made` for what is written as a list,
    tuple or dict, `passed` between comparisons.
    """
    counted: nodes.Template = _Counter().visit(tree)
    counted.set_environment(environment)
    return counted


def _call(method: str, arguments: list[nodes.Expr], lineno: int) -> nodes.Call:
    call = nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)
    return call.set_lineno(lineno)  # type: ignore[return-value]


class _Counter(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        step = _call("count", [], node.lineno)
        if node.test is None:
            node.body.insert(0, nodes.ExprStmt(step).set_lineno(node.lineno))
        else:
            # Rounds that the test leaves out count, too.
            node.test = nodes.And(step, node.test).set_lineno(node.lineno)
        return node

    def _container(self, node: Any) -> nodes.Expr:
        self.generic_visit(node)
        if getattr(node, "ctx", "load") != "load" or _is_constant(node):
            return node  # type: ignore[no-any-return]
        return _call("made", [node], node.lineno)

    visit_List = visit_Tuple = visit_Dict = _container  # noqa: N815

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = [node.arg.start, node.arg.stop, node.arg.step]
        given: list[nodes.Expr] = [
            nodes.Const(None).set_lineno(node.lineno) if bound is None else bound  # type: ignore[misc]
            for bound in bounds
        ]
        return _call("sliced", [node.node, *given], node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        left = node.expr
        costly = []
        for operand in node.ops:
            if operand.op in _EQUALITY:
                # As long as the shorter one at most.
                cheap = isinstance(left, nodes.Const) or isinstance(operand.expr, nodes.Const)
            else:
                cheap = _is_constant(operand.expr)
            costly += [] if cheap else [operand]
            left = operand.expr
        self.generic_visit(node)
        for operand in costly:
            operand.expr = _call("passed", [operand.expr], node.lineno)
        return node


def _is_constant(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Const):
        return True
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return all(map(_is_constant, node.items))
    if isinstance(node, nodes.Dict):
        return all(_is_constant(pair.key) and _is_constant(pair.value) for pair in node.items)
    return False
