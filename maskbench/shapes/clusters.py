"""Resources of clusters and clouds: deployments, services, policies."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    STR,
    Schema,
    Shape,
    array,
    defs,
    form,
    integer,
    obj,
    pattern,
    ref,
    text,
    words,
)

_LABELS: Schema = {
    "type": "object",
    "additionalProperties": text(None, 63),
    "propertyNames": pattern("^[a-z0-9./-]{1,63}$"),
}
_META = obj(
    {
        "name": pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", maxLength=63),
        "namespace": STR,
        "labels": _LABELS,
    },
    optional=["namespace", "labels"],
)


SHAPES = [
    Shape(
        "cluster_deployment",
        obj(
            {
                "apiVersion": {"const": "apps/v1"},
                "kind": {"const": "Deployment"},
                "metadata": _META,
                "spec": obj(
                    {
                        "replicas": integer(0, 100),
                        "template": obj(
                            {
                                "containers": array(
                                    obj(
                                        {
                                            "name": STR,
                                            "image": pattern("^[a-z0-9./-]+(:[A-Za-z0-9._-]+)?$"),
                                            "ports": array(
                                                obj(
                                                    {
                                                        "containerPort": integer(1, 65535),
                                                        "protocol": words("TCP", "UDP"),
                                                    },
                                                    optional=["protocol"],
                                                )
                                            ),
                                            "env": array(
                                                obj(
                                                    {
                                                        "name": pattern("^[A-Z_][A-Z0-9_]*$"),
                                                        "value": STR,
                                                    }
                                                )
                                            ),
                                        },
                                        optional=["ports", "env"],
                                    ),
                                    1,
                                )
                            }
                        ),
                    }
                ),
            }
        ),
        lambda d: {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": d.slug(),
                "namespace": "default",
                "labels": {"app": d.word(), "tier/x": ""},
            },
            "spec": {
                "replicas": d.int(0, 9),
                "template": {
                    "containers": [
                        {
                            "name": d.word(),
                            "image": f"registry/{d.word()}:{d.version()}",
                            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                            "env": [{"name": "LOG_LEVEL", "value": "info"}],
                        }
                    ]
                },
            },
        },
        (
            ("kind", "Service"),
            ("metadata/name", "Bad_Name"),
            ("metadata/labels/App", "x"),
            ("spec/replicas", -1),
            ("spec/template/containers", []),
            ("spec/template/containers/0/ports/0/containerPort", 0),
            ("spec/template/containers/0/env/0/name", "low"),
        ),
        optional=("metadata/namespace", "metadata/labels", "spec/template/containers/0/env"),
        features=("propertyNames",),
    ),
    Shape(
        "cluster_service",
        obj(
            {
                "kind": {"const": "Service"},
                "metadata": _META,
                "spec": {
                    "type": "object",
                    "properties": {
                        "type": words("ClusterIP", "NodePort"),
                        "ports": array(
                            obj(
                                {
                                    "port": integer(1, 65535),
                                    "targetPort": {
                                        "anyOf": [integer(1, 65535), pattern("^[a-z-]+$")]
                                    },
                                    "nodePort": integer(30000, 32767),
                                },
                                optional=["nodePort"],
                            ),
                            1,
                        ),
                    },
                    "required": ["type", "ports"],
                },
            }
        ),
        lambda d: {
            "kind": "Service",
            "metadata": {"name": d.word()},
            "spec": {
                "type": "NodePort",
                "ports": [
                    {
                        "port": d.int(1, 9999),
                        "targetPort": d.pick((80, "http-port")),
                        "nodePort": 30080,
                    }
                ],
            },
        },
        (
            ("spec/type", "External"),
            ("spec/ports", []),
            ("spec/ports/0/nodePort", 80),
            ("spec/ports/0/targetPort", "HTTP"),
            ("metadata", {}),
        ),
        optional=("spec/ports/0/nodePort",),
        features=("anyOf",),
    ),
    Shape(
        "cluster_quantities",
        {
            "type": "object",
            "additionalProperties": obj(
                {"limits": ref("q"), "requests": ref("q")}, optional=["limits", "requests"]
            ),
            "minProperties": 1,
            "$defs": {
                "q": obj(
                    {
                        "cpu": pattern("^([0-9]+m|[0-9]+(\\.[0-9]{1,3})?)$"),
                        "memory": pattern("^[0-9]+(Ki|Mi|Gi)$"),
                    },
                    optional=["cpu"],
                )
            },
        },
        lambda d: {
            d.word(): {
                "limits": {"cpu": d.pick(("500m", "2", "0.25")), "memory": f"{d.int(1, 512)}Mi"},
                "requests": {"memory": "1Gi"},
            }
        },
        (
            ("", {}),
            ("x", {"limits": {}}),
            ("x", {"limits": {"memory": "1GB"}}),
            ("x", {"limits": {"cpu": "1.2345", "memory": "1Gi"}}),
            ("x", {"burst": {}}),
        ),
        features=("$ref", "minProperties"),
    ),
    Shape(
        "compose_file",
        obj(
            {
                "services": {
                    "type": "object",
                    "patternProperties": {
                        "^[a-zA-Z0-9._-]+$": {
                            "type": "object",
                            "properties": {
                                "image": STR,
                                "build": {
                                    "anyOf": [
                                        STR,
                                        obj(
                                            {
                                                "context": STR,
                                                "args": {
                                                    "type": "object",
                                                    "additionalProperties": {
                                                        "type": ["string", "number", "null"]
                                                    },
                                                },
                                            },
                                            optional=["args"],
                                        ),
                                    ]
                                },
                                "ports": array({"type": ["string", "integer"]}, uniqueItems=True),
                                "depends_on": {
                                    "anyOf": [
                                        array(STR),
                                        {
                                            "type": "object",
                                            "additionalProperties": obj(
                                                {
                                                    "condition": words(
                                                        "service_started", "service_healthy"
                                                    )
                                                }
                                            ),
                                        },
                                    ]
                                },
                                "restart": words("no", "always", "on-failure"),
                            },
                            "additionalProperties": False,
                        }
                    },
                    "additionalProperties": False,
                },
                "volumes": {"type": "object", "additionalProperties": {"type": ["object", "null"]}},
            },
            optional=["volumes"],
        ),
        lambda d: {
            "services": {
                d.slug(): {
                    "build": d.pick((".", {"context": "./app", "args": {"N": 3, "E": None}})),
                    "ports": ["80:80", 443],
                    "depends_on": d.pick((["db"], {"db": {"condition": "service_healthy"}})),
                    "restart": "always",
                }
            },
            "volumes": {"data": None},
        },
        (
            ("services/bad name", {}),
            ("services/x", {"restart": "yes"}),
            ("services/x", {"ports": [1, 1]}),
            ("services/x", {"depends_on": {"db": {}}}),
            ("services/x", {"privileged": True}),
            ("services", []),
        ),
        optional=("volumes",),
        features=("patternProperties", "uniqueItems"),
    ),
    Shape(
        "infrastructure_state",
        obj(
            {
                "version": {"const": 4},
                "serial": integer(0),
                "outputs": {
                    "type": "object",
                    "additionalProperties": obj(
                        {"value": True, "type": {"anyOf": [STR, array(STR)]}, "sensitive": BOOL},
                        optional=["sensitive"],
                    ),
                },
                "resources": array(
                    obj(
                        {
                            "mode": words("managed", "data"),
                            "type": STR,
                            "name": STR,
                            "instances": array({"type": "object"}),
                        }
                    )
                ),
            }
        ),
        lambda d: {
            "version": 4,
            "serial": d.int(0, 99),
            "outputs": {
                d.word(): {"value": [1, {"a": None}], "type": ["list", "any"], "sensitive": True}
            },
            "resources": [
                {
                    "mode": "managed",
                    "type": d.ident(),
                    "name": d.word(),
                    "instances": [{}, {"k": 1}],
                }
            ],
        },
        (
            ("version", 3),
            ("serial", "1"),
            ("outputs/x", {"type": "string"}),
            ("resources/0/mode", "other"),
            ("resources/0/instances/+", []),
        ),
    ),
    Shape(
        "access_policy",
        obj(
            {
                "version": {"const": "2024-06-01"},
                "statements": array(
                    {
                        "type": "object",
                        "properties": {
                            "effect": words("Allow", "Deny"),
                            "actions": {"anyOf": [ref("a"), array(ref("a"), 1)]},
                            "resources": {
                                "anyOf": [{"const": "*"}, array(pattern("^res:[a-z]+:"), 1)]
                            },
                            "notBefore": form("date"),
                            "notAfter": form("date"),
                        },
                        "required": ["effect", "actions", "resources"],
                        "dependentRequired": {"notAfter": ["notBefore"]},
                        "additionalProperties": False,
                    },
                    1,
                ),
            },
            **defs({"a": pattern("^[a-z]+:(\\*|[A-Z][A-Za-z]+)$")}),
        ),
        lambda d: {
            "version": "2024-06-01",
            "statements": [
                {
                    "effect": d.pick(("Allow", "Deny")),
                    "actions": d.pick(("db:*", ["db:Read", "mail:Send"])),
                    "resources": d.pick(("*", [f"res:db:{d.word()}"])),
                    "notBefore": d.date(),
                    "notAfter": d.date(),
                }
            ],
        },
        (
            ("version", "2024"),
            ("statements", []),
            ("statements/0/effect", "allow"),
            ("statements/0/actions", "db"),
            ("statements/0/resources", []),
            ("statements/0/notBefore", DROP),
        ),
        features=("dependentRequired",),
    ),
]
