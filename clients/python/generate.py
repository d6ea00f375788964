"""Writes src/berth/models.py from the description of the API, api/openapi.yaml.

Run it by `make generate`; `make verify` fails when models.py is not what it makes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
DESCRIPTION = HERE.parents[1] / "api" / "openapi.yaml"
MODELS = HERE / "src" / "berth" / "models.py"

HEADER = '''# Generated from api/openapi.yaml by clients/python/generate.py. DO NOT EDIT.
"""What the API answers, one class for each schema of its description.

A field that the server left out is None. What a newer server adds is kept, too.
"""'''

# The server checks values: the client accepts an answer as it is.
LIMITS = {"minLength", "maxLength", "minimum", "maximum", "pattern", "maxItems", "default"}


def opened(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema without limits, whose enums take other texts, too.

    A newer server may have a state that this client does not know yet.
    """
    result = {key: value for key, value in schema.items() if key not in LIMITS and not key.startswith("x-")}
    if "properties" in result:
        result["properties"] = {name: opened(field) for name, field in result["properties"].items()}
    if "items" in result:
        result["items"] = opened(result["items"])
    if isinstance(result.get("additionalProperties"), bool):
        del result["additionalProperties"]
        if "properties" not in result:  # a document, such as the values of a trial
            result["additionalProperties"] = {}
    if "enum" in result:
        known = {"type": result.pop("type"), "enum": result.pop("enum")}
        result["anyOf"] = [known, {"type": "string"}]
    return result


def main() -> None:
    description = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))
    schemas = {
        name: opened(schema)
        for name, schema in description["components"]["schemas"].items()
        if not name.endswith("Sort")  # they are parameters, and no answers
    }
    document = {"openapi": "3.0.3", "info": description["info"], "paths": {}, "components": {"schemas": schemas}}
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "openapi.json")
        source.write_text(json.dumps(document), encoding="utf-8")
        subprocess.run(
            [
                sys.executable, "-m", "datamodel_code_generator",
                "--input", source, "--input-file-type", "openapi", "--output", MODELS,
                "--output-model-type", "pydantic_v2.BaseModel", "--base-class", "berth._model.Model",
                "--target-python-version", "3.10", "--no-use-union-operator", "--collapse-root-models",
                "--enum-field-as-literal", "all", "--use-schema-description", "--use-field-description",
                "--disable-timestamp", "--custom-file-header", HEADER, "--formatters", "builtin",
            ],
            check=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
