"""Configuration files: tools, services, pipelines."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    INT,
    STR,
    Shape,
    array,
    enum,
    form,
    integer,
    number,
    obj,
    pattern,
    text,
    words,
)

_STRINGS = {"type": "object", "additionalProperties": STR}

SHAPES = [
    Shape(
        "logger",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **obj(
                {
                    "level": words("debug", "info", "warning", "error"),
                    "format": words("text", "json"),
                    "file": {"type": ["string", "null"]},
                    "maxBytes": integer(1024),
                    "rotate": BOOL,
                },
                optional=["file", "maxBytes", "rotate"],
            ),
        },
        lambda d: {
            "level": d.pick(("debug", "info", "warning", "error")),
            "format": d.pick(("text", "json")),
            "file": d.pick((None, f"/var/log/{d.slug()}.log")),
            "maxBytes": d.int(1024, 10**8),
            "rotate": d.bool(),
        },
        (
            ("level", "INFO"),
            ("format", "xml"),
            ("file", 3),
            ("maxBytes", 1023),
            ("rotate", 0),
            ("colour", True),
        ),
        optional=("file", "maxBytes", "rotate"),
    ),
    Shape(
        "http_server",
        obj(
            {
                "host": {"anyOf": [form("ipv4"), form("hostname")]},
                "port": integer(1, 65535),
                "tls": obj(
                    {"cert": text(1), "key": text(1), "minVersion": enum("1.2", "1.3")},
                    optional=["minVersion"],
                ),
                "timeouts": obj(
                    {"read": number(0), "write": number(0), "idle": number(0)},
                    optional=["read", "write", "idle"],
                ),
                "headers": _STRINGS,
            },
            optional=["tls", "timeouts", "headers"],
        ),
        lambda d: {
            "host": d.pick((d.ipv4(), d.host())),
            "port": d.int(1, 65535),
            "tls": {"cert": "/etc/tls/cert.pem", "key": "/etc/tls/key.pem", "minVersion": "1.3"},
            "timeouts": {"read": d.num(0, 60, 1), "write": d.int(0, 60), "idle": d.num(0, 600)},
            "headers": {"X-Frame-Options": "DENY", "X-Served-By": d.word()},
        },
        (
            ("host", "bad host"),
            ("port", 0),
            ("port", 65536),
            ("port", "80"),
            ("tls/minVersion", 1.2),
            ("tls/cert", ""),
            ("timeouts/read", -1),
            ("headers/X-Count", 1),
        ),
        optional=("tls/minVersion", "timeouts/write", "headers"),
    ),
    Shape(
        "package_manifest",
        obj(
            {
                "name": pattern("^(@[a-z0-9-]+/)?[a-z0-9][a-z0-9._-]*$", maxLength=64),
                "version": pattern("^[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.-]+)?$"),
                "description": STR,
                "license": words("MIT", "Apache-2.0", "BSD-3-Clause", "MPL-2.0"),
                "private": BOOL,
                "scripts": _STRINGS,
                "dependencies": {
                    "type": "object",
                    "additionalProperties": pattern("^[~^]?[0-9]+(\\.[0-9]+){0,2}$"),
                },
                "keywords": array(STR, None, 10),
                "homepage": form("uri"),
            },
            optional=[
                "description",
                "license",
                "private",
                "scripts",
                "dependencies",
                "keywords",
                "homepage",
            ],
        ),
        lambda d: {
            "name": d.pick((d.slug(), f"@{d.word()}/{d.slug()}")),
            "version": f"{d.version()}{d.pick(('', '-beta.1', '-rc2'))}",
            "description": d.sentence(),
            "license": d.pick(("MIT", "Apache-2.0")),
            "private": d.bool(),
            "scripts": {"build": f"make {d.word()}", "test": "make check"},
            "dependencies": {d.slug(): f"^{d.version()}", d.ident(): "~2.1"},
            "keywords": d.list(0, 4, d.word),
            "homepage": d.uri(),
        },
        (
            ("name", "Upper"),
            ("name", "@scope"),
            ("name", "a" * 65),
            ("version", "1.0"),
            ("license", "mit"),
            ("dependencies/left", "latest"),
            ("scripts/build", ["make"]),
            ("homepage", "not a uri"),
            ("version", DROP),
        ),
        optional=("description", "license", "private", "scripts", "keywords", "homepage"),
    ),
    Shape(
        "ci_pipeline",
        obj(
            {
                "name": text(1),
                "on": array(words("push", "pull_request", "schedule", "manual"), 1),
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                },
                "jobs": {
                    "type": "object",
                    "additionalProperties": obj(
                        {
                            "runs-on": words("linux", "macos", "windows"),
                            "needs": array(STR),
                            "steps": array(
                                {
                                    "anyOf": [
                                        obj({"run": text(1)}),
                                        obj({"uses": pattern("^[a-z-]+@v[0-9]+$")}),
                                    ]
                                },
                                1,
                            ),
                            "timeout-minutes": integer(1, 360),
                        },
                        optional=["needs", "timeout-minutes"],
                    ),
                },
            },
            optional=["env"],
        ),
        lambda d: {
            "name": d.title(),
            "on": d.some(("push", "pull_request", "schedule", "manual"), 1, 3),
            "env": {"DEBUG": d.bool(), "RETRIES": d.int(0, 5), "REGION": d.city()},
            "jobs": {
                "build": {
                    "runs-on": "linux",
                    "needs": [],
                    "steps": [{"uses": "checkout@v4"}, {"run": "make all\nmake check"}],
                    "timeout-minutes": d.int(1, 360),
                },
                d.slug(): {"runs-on": "macos", "needs": ["build"], "steps": [{"run": "ls -l"}]},
            },
        },
        (
            ("on", []),
            ("on/0", "tag"),
            ("env/LIST", ["a"]),
            ("jobs/build/runs-on", "amiga"),
            ("jobs/build/steps", []),
            ("jobs/build/steps/0", {"run": "ls", "uses": "checkout@v4"}),
            ("jobs/build/steps/0", {"uses": "checkout"}),
            ("jobs/build/timeout-minutes", 361),
        ),
        optional=("env", "jobs/build/needs", "jobs/build/timeout-minutes"),
    ),
    Shape(
        "container_service",
        obj(
            {
                "image": pattern("^[a-z0-9./-]+(:[A-Za-z0-9._-]+)?$"),
                "replicas": integer(0, 100),
                "ports": array(
                    obj(
                        {"containerPort": integer(1, 65535), "protocol": words("TCP", "UDP")},
                        optional=["protocol"],
                    )
                ),
                "env": array(obj({"name": pattern("^[A-Z_][A-Z0-9_]*$"), "value": STR})),
                "resources": obj(
                    {
                        "cpu": pattern("^[0-9]+m?$"),
                        "memory": pattern("^[0-9]+(Ki|Mi|Gi)$"),
                    }
                ),
                "restart": enum("Always", "OnFailure", "Never"),
            },
            optional=["ports", "env", "restart"],
        ),
        lambda d: {
            "image": f"registry/{d.slug()}:{d.version()}",
            "replicas": d.int(0, 100),
            "ports": [{"containerPort": d.int(1, 65535), "protocol": "TCP"}],
            "env": [{"name": "LOG_LEVEL", "value": d.word()}, {"name": "_X1", "value": ""}],
            "resources": {"cpu": d.pick(("2", "250m")), "memory": d.pick(("512Mi", "2Gi"))},
            "restart": d.pick(("Always", "OnFailure", "Never")),
        },
        (
            ("image", "Bad Image"),
            ("replicas", -1),
            ("replicas", 2.5),
            ("ports/0/protocol", "SCTP"),
            ("ports/0/containerPort", 70000),
            ("env/0/name", "lower"),
            ("env/0/value", 1),
            ("resources/memory", "2GB"),
            ("resources/cpu", DROP),
        ),
        optional=("ports", "env", "restart"),
    ),
    Shape(
        "feature_flags",
        {
            "type": "object",
            "patternProperties": {
                "^[a-z][a-z0-9_]*$": obj(
                    {"enabled": BOOL, "percent": number(0, 100), "groups": array(STR)},
                    optional=["percent", "groups"],
                )
            },
            "additionalProperties": False,
        },
        lambda d: {
            "new_checkout": {"enabled": d.bool(), "percent": d.num(0, 100), "groups": ["staff"]},
            d.ident(): {"enabled": d.bool()},
        },
        (
            ("Bad-Name", {"enabled": True}),
            ("new_checkout/percent", 100.5),
            ("new_checkout/enabled", DROP),
            ("new_checkout/groups", "staff"),
        ),
        optional=("new_checkout/percent", "new_checkout/groups"),
        features=("patternProperties",),
    ),
    Shape(
        "editor_settings",
        obj(
            {
                "editor.tabSize": integer(1, 16),
                "editor.insertSpaces": BOOL,
                "editor.rulers": array(integer(0, 500), None, 4),
                "editor.fontFamily": STR,
                "files.exclude": {"type": "object", "additionalProperties": BOOL},
                "files.eol": enum("\n", "\r\n", "auto"),
                "theme": words("light", "dark", "high-contrast"),
            },
            optional=[
                "editor.tabSize",
                "editor.insertSpaces",
                "editor.rulers",
                "editor.fontFamily",
                "files.exclude",
                "files.eol",
                "theme",
            ],
        ),
        lambda d: {
            "editor.tabSize": d.int(1, 16),
            "editor.insertSpaces": d.bool(),
            "editor.rulers": d.list(0, 4, lambda: d.int(0, 500)),
            "editor.fontFamily": "'Fira Code', monospace",
            "files.exclude": {"**/*.pyc": True, "build/": d.bool()},
            "files.eol": d.pick(("\n", "\r\n", "auto")),
            "theme": d.pick(("light", "dark", "high-contrast")),
        },
        (
            ("editor.tabSize", 0),
            ("editor.tabSize", "4"),
            ("editor.rulers", [80, 501]),
            ("files.exclude/x", 1),
            ("files.eol", "\r"),
            ("theme", "Dark"),
            ("editor", {}),
        ),
        optional=("editor.tabSize", "editor.rulers", "files.exclude", "files.eol", "theme"),
    ),
    Shape(
        "cron_jobs",
        array(
            obj(
                {
                    "name": pattern("^[a-z0-9-]{1,32}$"),
                    "schedule": pattern("^(\\*|[0-9]{1,2})( (\\*|[0-9]{1,2})){4}$"),
                    "command": array(STR, 1),
                    "enabled": BOOL,
                },
                optional=["enabled"],
            ),
            1,
            20,
        ),
        lambda d: [
            {
                "name": d.slug(),
                "schedule": f"{d.int(0, 59)} {d.int(0, 23)} * * {d.pick(('*', '1'))}",
                "command": ["/bin/sh", "-c", d.sentence()],
                "enabled": d.bool(),
            }
            for _ in range(d.int(1, 3))
        ],
        (
            ("", []),
            ("0/name", "Has Space"),
            ("0/schedule", "* * * *"),
            ("0/schedule", "@daily"),
            ("0/command", []),
            ("0/command", "ls"),
            ("0/enabled", "true"),
        ),
        optional=("0/enabled",),
    ),
    Shape(
        "database_connection",
        obj(
            {
                "driver": words("postgres", "mysql", "sqlite"),
                "host": form("hostname"),
                "port": integer(1, 65535, default=5432),
                "user": text(1, 63),
                "pool": obj({"min": integer(0, 50), "max": integer(1, 500)}),
                "ssl": enum("disable", "prefer", "require", True, False),
                "options": _STRINGS,
            },
            optional=["port", "pool", "ssl", "options"],
        ),
        lambda d: {
            "driver": d.pick(("postgres", "mysql", "sqlite")),
            "host": d.host(),
            "port": d.int(1, 65535),
            "user": d.word(),
            "pool": {"min": d.int(0, 5), "max": d.int(6, 100)},
            "ssl": d.pick(("disable", "require", True, False)),
            "options": {"application_name": d.slug()},
        },
        (
            ("driver", "oracle"),
            ("host", "-bad-"),
            ("port", None),
            ("user", ""),
            ("pool/max", 0),
            ("pool/min", DROP),
            ("ssl", "maybe"),
            ("ssl", 1),
            ("options/n", 3),
        ),
        optional=("port", "ssl", "options"),
    ),
    Shape(
        "alert_rule",
        obj(
            {
                "metric": pattern("^[a-z_]+(\\.[a-z_]+)+$"),
                "operator": enum("<", "<=", ">", ">=", "==", "!="),
                "threshold": number(),
                "for": pattern("^[1-9][0-9]*(s|m|h|d)$"),
                "labels": _STRINGS,
                "notify": array(
                    {
                        "anyOf": [
                            obj({"type": {"const": "email"}, "to": form("email")}),
                            obj({"type": {"const": "webhook"}, "url": form("uri")}),
                        ]
                    },
                    1,
                    4,
                ),
            },
            optional=["labels"],
        ),
        lambda d: {
            "metric": f"{d.word()}.{d.ident()}",
            "operator": d.pick(("<", "<=", ">", ">=", "==", "!=")),
            "threshold": d.num(-100, 100),
            "for": f"{d.int(1, 90)}{d.pick('smhd')}",
            "labels": {"team": d.word(), "city": d.city()},
            "notify": [
                {"type": "email", "to": d.email()},
                {"type": "webhook", "url": d.uri()},
            ],
        },
        (
            ("metric", "cpu"),
            ("operator", "=>"),
            ("for", "0m"),
            ("for", "5 m"),
            ("labels/team", None),
            ("notify", []),
            ("notify/0", {"type": "email", "url": "https://example.com"}),
            ("notify/0/to", "someone"),
            ("notify/1/type", "pager"),
        ),
        optional=("labels",),
    ),
    Shape(
        "docker_like_build",
        obj(
            {
                "context": STR,
                "args": {"anyOf": [_STRINGS, array(pattern("^[A-Z_]+=.*$"))]},
                "target": STR,
                "platforms": array(words("linux/amd64", "linux/arm64", "linux/arm/v7"), 1),
                "cache": {"anyOf": [BOOL, obj({"from": array(STR, 1), "max": integer(1)})]},
            },
            optional=["args", "target", "platforms", "cache"],
        ),
        lambda d: {
            "context": ".",
            "args": d.pick(({"MODE": d.word()}, [f"MODE={d.word()}", "EMPTY="])),
            "target": d.word(),
            "platforms": d.some(("linux/amd64", "linux/arm64", "linux/arm/v7"), 1, 3),
            "cache": d.pick((True, {"from": [d.slug()], "max": d.int(1, 9)})),
        },
        (
            ("args", ["mode=x"]),
            ("args", "MODE=x"),
            ("platforms/0", "linux"),
            ("cache", {"from": [], "max": 1}),
            ("cache", "yes"),
            ("context", DROP),
        ),
        optional=("args", "target", "platforms", "cache"),
    ),
    Shape(
        "keyboard_layout",
        obj(
            {
                "rows": array(array(text(1, 6), 1, 16), 3, 6),
                "layers": array({"type": "object", "additionalProperties": integer(0, 255)}, 1, 4),
                "split": BOOL,
                "year": INT,
            },
            optional=["year"],
        ),
        lambda d: {
            "rows": [list("qwert"), list("asdfg"), ["⇧", "z", "\\", '"', "€"]],
            "layers": [{"q": d.int(0, 255), "⇧": 16}, {}],
            "split": d.bool(),
            "year": d.int(1980, 2030),
        },
        (
            ("rows", [["a"], ["b"]]),
            ("rows/0", []),
            ("rows/0/0", ""),
            ("rows/0/0", "toolong"),
            ("layers", []),
            ("layers/0/q", 256),
            ("split", None),
        ),
        optional=("year",),
    ),
]
