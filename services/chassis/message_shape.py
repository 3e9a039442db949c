"""Whether a JSON value has the shape of a protobuf message, stricter than proto3's own rules.

Those take ``"30"`` for 30, ``30.0`` for 30 and null for anything, which hides slips of
a hand that edits a key.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from services.chassis.strict_json import kind

_WIDE = {
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT64,
}
_WHOLE = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32, *_WIDE}
_REAL = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}
_DIGITS = re.compile(r"-?[0-9]{1,20}\Z")


def check(value: Any, descriptor: Descriptor, path: str = "") -> None:
    """Raises ValueError naming the first field of ``value`` that is unknown or of a wrong kind.

    Well-known types (durations, structs) have forms of their own and are left to
    protobuf's parser, as are ranges.
    """
    if descriptor.full_name.startswith("google.protobuf."):
        return
    if not isinstance(value, dict):
        raise ValueError(f"{path or 'it'} must be an object, not {kind(value)}")
    for name, item in value.items():
        field = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
        if field is None:
            raise ValueError(f"{_join(path, name)} is not a field of {descriptor.name}")
        _check_field(item, field, _join(path, name))


def _check_field(value: Any, field: FieldDescriptor, path: str) -> None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        if not isinstance(value, dict):
            raise ValueError(f"{path} must be an object, not {kind(value)}")
        for name, item in value.items():
            _check_one(item, entry.fields_by_name["value"], _join(path, name))
    elif field.is_repeated:
        if not isinstance(value, list):
            raise ValueError(f"{path} must be a list, not {kind(value)}")
        for index, item in enumerate(value):
            _check_one(item, field, f"{path}[{index}]")
    else:
        _check_one(value, field, path)


def _check_one(value: Any, field: FieldDescriptor, path: str) -> None:
    if field.message_type is not None:
        check(value, field.message_type, path)
    elif not _fits(value, field):
        raise ValueError(f"{path} must be {_wanted(field)}, not {kind(value)}")
    elif field.enum_type is not None and value not in field.enum_type.values_by_name:
        known = ", ".join(sorted(field.enum_type.values_by_name))
        raise ValueError(f"{path} must be one of {known}")


def _fits(value: Any, field: FieldDescriptor) -> bool:
    if isinstance(value, bool) or field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return isinstance(value, bool) and field.cpp_type == FieldDescriptor.CPPTYPE_BOOL
    if field.cpp_type in _WIDE and isinstance(value, str):  # as protobuf itself writes them
        return _DIGITS.match(value) is not None
    if field.cpp_type in _WHOLE:
        return isinstance(value, int)
    if field.cpp_type in _REAL:
        return isinstance(value, int | float)
    return isinstance(value, str)


def _wanted(field: FieldDescriptor) -> str:
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "true or false"
    if field.cpp_type in _WHOLE:
        return "a whole number"
    return "a number" if field.cpp_type in _REAL else "a string"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
