"""What one text tells, before anybody asks for JSON."""

from dataclasses import dataclass
from random import Random
from typing import Any

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}


@dataclass(frozen=True)
class Field:
    """One key with its value, its schema and the sentence that tells it."""

    key: str
    value: Any
    schema: dict[str, Any]
    sentence: str

    def spoken(self) -> str:
        """The key as instructions write it: `address(street, city)`, `items[product, count]`."""
        if self.schema["type"] == "object":
            return f"{self.key}({', '.join(self.schema['properties'])})"
        if self.schema["type"] == "array":
            return f"{self.key}[{', '.join(self.schema['items'].get('properties', {}))}]"
        return self.key


@dataclass(frozen=True)
class Record:
    """What one text tells: fields in any order, and sentences that are not asked for."""

    fields: list[Field]
    distractors: list[str]
    chinese: bool = False


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """A closed object whose keys are all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def one(rng: Random, *choices: str) -> str:
    """One of several ways to say the same."""
    return rng.choice(choices)
