"""The JSON Schema of a whole study file: top-level keys from Python, all others from the native module."""

from __future__ import annotations

import copy
from typing import Any

from longfat.study.claim_tables import EACH
from longfat.study.expressions.settings import KEY, START, UNITS
from longfat.study.specification import Study
from longfat.study.sweep import LABEL, PATH, VALUE
from longfat.study.vocabulary import SECTIONS, Section, vocabulary

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/"


def study_schema() -> dict[str, Any]:
    """Returns a schema (draft 2020-12) for editors."""
    schema = Study.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = schema.setdefault("$defs", {})
    adopted = {section: _adopt(section, definitions) for section in SECTIONS}
    tables: tuple[Section, ...] = ("path", "topology", "workload")
    for section in tables:
        help_text = schema["properties"][section].get("description")
        schema["properties"][section] = {**adopted[section], "description": help_text}
    entries: tuple[tuple[str, Section], ...] = (("ProtocolEntry", "protocol"), ("TrafficEntry", "traffic"))
    for entry, section in entries:
        own = definitions.pop(entry)["properties"]
        definitions[entry] = _with_name(adopted[section], own, definitions)
    _accept_short_forms(schema["properties"], definitions)
    schema["properties"]["sweep"] = _sweep(schema["properties"]["sweep"], adopted, definitions)
    return {"$schema": DIALECT, **_extensible(schema)}


_REQUIRED = {"workload": ["kind"], "topology": ["kind"]}
_REQUIRED_OF_ENTRIES = {
    "protocols": ["kind"],
    "traffic": ["name", "protocol", "workload"],
}
_CLAIM = {"if": {"required": [EACH]}, "then": {}, "else": {"required": ["id", "text", "relation"]}}
"""A claim, or a group of claims that have these keys together with their group."""


def _accept_short_forms(properties: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Adds the short forms of `longfat.study.plain.with_entries` to protocols, traffic and claims."""
    name = {"type": "string", "description": "Kind of protocol, or congestion controller of TCP."}
    listed = properties["protocols"]
    entry = {"anyOf": [listed.pop("items"), name]}
    kept = {key: listed.pop(key) for key in ("type", "minItems")}
    listed["anyOf"] = [{**kept, "items": entry}, *entry["anyOf"]]
    listed = properties["traffic"]
    listed["anyOf"] = [{"type": listed.pop("type"), "items": listed["items"]}, listed.pop("items")]
    definitions["Claim"]["properties"][EACH]["items"] = {"$ref": f"{_REFERENCE}Claim"}
    own = definitions["TrafficEntry"]["properties"]
    own["protocol"] = {"anyOf": [own["protocol"], name]}


def _extensible(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with required keys that apply only to studies without `extends`."""
    definitions = schema["$defs"]
    for name in ("ProtocolEntry", "TrafficEntry", "Claim"):
        definitions[name] = _optional(definitions[name])
    for section in _REQUIRED:
        schema["properties"][section] = _optional(schema["properties"][section])
    required = {
        "required": schema.pop("required"),
        "oneOf": [{"required": ["path"]}, {"required": ["topology"]}],
        "properties": {section: {"required": keys} for section, keys in _REQUIRED.items()}
        | {key: {"items": {"required": keys}} for key, keys in _REQUIRED_OF_ENTRIES.items()}
        | {"claims": {"items": _CLAIM}},
    }
    return {**schema, "if": {"required": ["extends"]}, "then": {}, "else": required}


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a table, and of its alternatives, without required keys."""
    found = {key: value for key, value in schema.items() if key not in ("required", "oneOf")}
    alternatives = schema.get("oneOf") or schema.get("anyOf")
    return found | ({"anyOf": [_optional(one) for one in alternatives]} if alternatives else {})


def _adopt(section: Section, definitions: dict[str, Any]) -> dict[str, Any]:
    """Moves a section's definitions to the whole schema, renamed on conflicts, and returns its own schema."""
    own = copy.deepcopy(vocabulary()[section])
    own.pop("$schema", None)
    inner: dict[str, Any] = own.pop("$defs", {})
    names = {
        name: name if definitions.get(name, content) == content else f"{section}-{name}"
        for name, content in inner.items()
    }
    for name, content in inner.items():
        definitions[names[name]] = _computable(_renamed(content, names))
    adopted: dict[str, Any] = _renamed(own, names)
    return adopted


_EXPRESSION = rf"^{START}.*({UNITS}|\s[-+*/]\s|\()|^[\s(+-]*{UNITS}|{KEY}"
"""The form of most expressions; operators have spaces around them, unlike those in the unit of a rate."""


def _computable(value: Any) -> Any:
    """Returns the schema of a definition whose quantities can also be expressions."""
    if isinstance(value, dict):
        found = {key: _computable(inner) for key, inner in value.items()}
        if value.get("type") == "string" and "pattern" in value:
            found["pattern"] = f"{value['pattern']}|{_EXPRESSION}"
        return found
    return [_computable(inner) for inner in value] if isinstance(value, list) else value


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: _REFERENCE + names.get(inner.removeprefix(_REFERENCE), inner.removeprefix(_REFERENCE))
            if key == "$ref" and isinstance(inner, str)
            else _renamed(inner, names)
            for key, inner in value.items()
        }
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value


def resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with its reference resolved; its own keys take precedence."""
    if "$ref" not in schema:
        return schema
    target = resolve(definitions[schema["$ref"].removeprefix(_REFERENCE)], definitions)
    merged = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "properties" in target and "properties" in schema:
        merged["properties"] = {**schema["properties"], **target["properties"]}
        merged["required"] = [*schema.get("required", []), *target.get("required", [])]
    return merged


def variants(schema: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the resolved alternatives of a section with kinds, or the schema itself.

    Nested alternatives are flattened and keep their shared keys.
    """
    schema = resolve(schema, definitions)
    listed = schema.get("oneOf") or schema.get("anyOf")
    if not listed:
        return [schema]
    shared = {key: value for key, value in schema.items() if key not in ("oneOf", "anyOf", "$defs")}
    found: list[dict[str, Any]] = []
    for alternative in listed:
        for variant in variants(alternative, definitions):
            merged = {**shared, **variant}
            for key, empty in (("properties", {}), ("required", [])):
                if key in shared and key in variant:
                    both = (shared[key], variant[key])
                    merged[key] = {**both[0], **both[1]} if empty == {} else [*both[0], *both[1]]
            found.append(merged)
    return found


def _with_name(protocol: dict[str, Any], own: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns an entry's schema with its own keys in each kind, of which the name is required."""
    named = []
    for variant in variants(protocol, definitions):
        properties = {**own, **variant.get("properties", {})}
        named.append(
            {
                **variant,
                "properties": properties,
                "required": list(dict.fromkeys(["name", *variant.get("required", [])])),
            }
        )
    if len(named) == 1:
        return named[0]
    return {
        **{key: value for key, value in protocol.items() if key not in ("oneOf", "anyOf")},
        "oneOf": named,
    }


def _labelled(content: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a value, or of a table with the value and a label."""
    named = {
        "type": "object",
        "properties": {LABEL: {"type": "string", "minLength": 1}, VALUE: content},
        "required": [LABEL, VALUE],
        "additionalProperties": False,
    }
    return {"anyOf": [content, named]}


def _sweep(
    plain: dict[str, Any], adopted: dict[Section, dict[str, Any]], definitions: dict[str, Any]
) -> dict[str, Any]:
    """Returns the sweep's schema with the keys that can be swept."""
    values = plain["additionalProperties"]
    listed, span = values["anyOf"]
    properties: dict[str, Any] = {}
    for section, schema in adopted.items():
        for variant in variants(schema, definitions):
            for key, content in variant.get("properties", {}).items():
                of_key = {
                    "anyOf": [{**listed, "items": _labelled(content)}, span],
                    "description": content.get("description", ""),
                }
                if section != "traffic":
                    properties.setdefault(f"{section}.{key}", of_key)
    properties[PATH] = {
        **listed,
        "items": _labelled({"type": ["object", "string"]}),
        "description": "Whole paths: tables of path keys, or path models as @FILE.",
    }
    tables = "|".join(section for section in SECTIONS if section != "traffic")
    # Whole paths, too, can move together with other keys: "path, workload.size".
    nested = rf"^(({tables}|(protocols|traffic)\.[^.]+)\.|{PATH},)"
    return {
        "type": "object",
        "description": plain.get("description", ""),
        "properties": properties,
        "patternProperties": {nested: values},
        "additionalProperties": False,
    }
