"""The HTML document of the page, which needs no other file."""

from __future__ import annotations

import functools
from importlib import resources

from ffwd.view.page import hash_of

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>ffwd play</title>
<link rel="icon" href="data:,">
{styles}
</head>
<body>
{body}
{scripts}
</body>
</html>
"""
_STYLES = ("codemirror/codemirror.css", "play.css")
_SCRIPTS = ("codemirror/codemirror.js", "editors.js", "panels.js", "play.js")


@functools.cache
def _file(name: str) -> str:
    return resources.files("ffwd.play").joinpath(name).read_text(encoding="utf-8")


def policy(*, is_served: bool) -> str:
    """Return the content security policy: the page's own scripts and styles, and no other address.

    `is_served`: whether the page sends its requests to the server that it is from; in a notebook
    it sends none.
    """
    styles = " ".join(f"'{hash_of(_file(name))}'" for name in _STYLES)
    scripts = " ".join(f"'{hash_of(_file(name))}'" for name in _SCRIPTS)
    connect = "'self'" if is_served else "'none'"
    frames = "; frame-ancestors 'none'" if is_served else ""
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'{frames}"
    )


def page(*, is_served: bool = True) -> str:
    """Return the document, for a server or for a frame of a notebook."""
    return _PAGE.format(
        # A meta element cannot forbid frames.
        policy=policy(is_served=is_served).partition("; frame-ancestors")[0],
        styles="\n".join(f"<style>{_file(name)}</style>" for name in _STYLES),
        body=_file("play.html"),
        scripts="\n".join(f"<script>{_file(name)}</script>" for name in _SCRIPTS),
    )
