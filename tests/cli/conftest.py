"""A model and files that the commands are given."""

import json

import pytest
from climodels import SCHEMA, write_model


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA, indent=2), encoding="utf-8")
    return path


@pytest.fixture
def messages(tmp_path):
    path = tmp_path / "messages.json"
    path.write_text(
        json.dumps([{"role": "user", "content": "Ada <|im_end|> ordered."}]), encoding="utf-8"
    )
    return path
