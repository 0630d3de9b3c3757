"""Typing of arrays, maps and structs: how they are built, measured and read."""

from __future__ import annotations

import pyarrow as pa

from headrace.plan.expressions import kinds
from headrace.plan.expressions.kinds import BIGINT, BOOLEAN, INT, STRING
from headrace.plan.expressions.site import LeftToSpark, Site, rule
from headrace.plan.expressions.syntax.nodes import Kind
from headrace.plan.expressions.syntax.problems import unknown_name
from headrace.plan.expressions.terms import Constant, Term


@rule("struct", "named_struct")
def structure(site: Site, terms: tuple[Term, ...]) -> Term:
    """Alternating names and values."""
    if len(terms) % 2:
        raise site.refuse("named_struct takes a name before each value")
    names: list[str] = []
    for term in terms[::2]:
        name = site.literal(term, "a field name").value
        if not isinstance(name, str):
            raise site.refuse(f"{term.text} is not a field name")
        names.append(name)
    values = [_storable(site, term) for term in terms[1::2]]
    fields = [pa.field(name, kind, term.nullable) for name, (term, kind) in zip(names, values, strict=True)]
    return site.apply(pa.struct(fields), *(term for term, _ in values), options=names, nullable=False)


def _storable(site: Site, term: Term) -> tuple[Term, pa.DataType]:
    if not isinstance(term.kind, pa.DataType) or term.kind == kinds.NULL:
        raise LeftToSpark(f"{site.name} of {term.text} is evaluated by Spark")
    return term, term.kind


@rule("array")
def array(site: Site, terms: tuple[Term, ...]) -> Term:
    if not terms:
        raise LeftToSpark("an empty array is built by Spark")
    alike = site.same(*terms)
    _, kind = _storable(site, alike[0])
    if kinds.array(kind) or kinds.mapping(kind):
        raise LeftToSpark("an array of arrays or maps is built by Spark", pa.list_(pa.field("element", kind)))
    field = pa.field("element", kind, any(term.nullable for term in alike))
    return site.apply(pa.list_(field), *alike, nullable=False)


@rule("map")
def mapping(site: Site, terms: tuple[Term, ...]) -> Term:
    """Alternating keys and values; where the keys are distinct constants, none can be null or occur twice."""
    if len(terms) % 2:
        raise site.refuse("map takes a key before each value")
    keys = [term.value if isinstance(term, Constant) else None for term in terms[::2]]
    if not keys or None in keys or len(set(keys)) < len(keys):
        raise LeftToSpark("a map is built here only of keys that are distinct constants")
    named, values = site.same(*terms[::2]), site.same(*terms[1::2])
    (_, key), (_, value) = _storable(site, named[0]), _storable(site, values[0])
    if kinds.floating(key) or kinds.array(value) or kinds.mapping(value):
        raise LeftToSpark("a map is built here only of simple keys, and of values that are not arrays or maps")
    kind = pa.map_(key, pa.field("value", value, any(term.nullable for term in values)))
    return site.apply(kind, *(term for pair in zip(named, values, strict=True) for term in pair), nullable=False)


@rule("size", "cardinality", arguments=1)
def size(site: Site, terms: tuple[Term, ...]) -> Term:
    if not kinds.array(terms[0].kind or INT) and not kinds.mapping(terms[0].kind or INT):
        raise site.refuse(f"{site.name} takes an array or a map, and {terms[0].text} is {kinds.named(terms[0].kind or INT)}")
    return site.apply(INT, terms[0])


@rule("array_size", arguments=1)
def array_size(site: Site, terms: tuple[Term, ...]) -> Term:
    _element(site, terms[0])
    return site.apply(INT, terms[0], name="size")


@rule("array_contains", arguments=2)
def array_contains(site: Site, terms: tuple[Term, ...]) -> Term:
    element = _element(site, terms[0])
    if kinds.nested(element) or terms[1].kind != element:
        raise LeftToSpark("array_contains is evaluated here for a value of the array's own simple type", BOOLEAN)
    return site.apply(BOOLEAN, *terms, nullable=True)


def _element(site: Site, term: Term) -> pa.DataType:
    if not isinstance(term.kind, pa.ListType):
        raise site.refuse(f"{site.name} takes an array, and {term.text} is {kinds.named(term.kind or INT)}")
    return term.kind.value_type


@rule("element_at", arguments=2)
@rule("try_element_at", arguments=2)
@rule("[]", arguments=2)
def element(site: Site, terms: tuple[Term, ...]) -> Term:
    container, index = terms
    if isinstance(container.kind, pa.MapType):
        return _looked_up(site, container, index, container.kind)
    if isinstance(container.kind, pa.StructType) and site.name == "[]":
        if not isinstance(index, Constant) or not isinstance(index.value, str):
            raise site.refuse("a field of a struct is named by a constant text")
        return field_of(site, container, index.value)
    kind = _element(site, container)
    if not kinds.integer(index.kind or INT) and index.kind != kinds.NULL:
        raise site.refuse(f"an array is read by a whole number, and {index.text} is {kinds.named(index.kind or INT)}")
    if index.kind == BIGINT and site.name != "[]":
        raise LeftToSpark(f"{site.name} by a bigint is evaluated by Spark", kind)
    items_may_be_null = isinstance(container.kind, pa.ListType) and container.kind.value_field.nullable
    may_be_null = container.nullable or index.nullable or items_may_be_null or site.name == "try_element_at"
    return site.apply(kind, container, site.cast(index, BIGINT), nullable=may_be_null)


@rule("get", arguments=2)
def get(site: Site, terms: tuple[Term, ...]) -> Term:
    kind = _element(site, terms[0])
    return site.apply(kind, terms[0], site.wants(terms[1], INT), nullable=True)


def _looked_up(site: Site, container: Term, key: Term, kind: pa.MapType) -> Term:
    if key.kind != kind.key_type or kinds.floating(kind.key_type) or kinds.nested(kind.key_type):
        raise LeftToSpark("a map is read here by a key of its own simple type", kind.item_type)
    return site.apply(kind.item_type, container, key, nullable=True, name="map value")


@rule("map_keys", arguments=1)
@rule("map_values", arguments=1)
def map_parts(site: Site, terms: tuple[Term, ...]) -> Term:
    kind = terms[0].kind
    if not isinstance(kind, pa.MapType):
        raise site.refuse(f"{site.name} takes a map, and {terms[0].text} is {kinds.named(kind or INT)}")
    item = pa.field("element", kind.key_type, False) if site.name == "map_keys" else pa.field("element", kind.item_type)
    return site.apply(pa.list_(item), terms[0])


@rule("map_contains_key", arguments=2)
def map_contains_key(site: Site, terms: tuple[Term, ...]) -> Term:
    kind = terms[0].kind
    if not isinstance(kind, pa.MapType):
        raise site.refuse(f"map_contains_key takes a map, and {terms[0].text} is {kinds.named(kind or INT)}")
    if terms[1].kind != kind.key_type or kinds.floating(kind.key_type) or kinds.nested(kind.key_type):
        raise LeftToSpark("a map is read here by a key of its own simple type", BOOLEAN)
    return site.apply(BOOLEAN, *terms)


def field_of(site: Site, container: Term, name: str) -> Term:
    """The field `name` of a struct, found whatever its case."""
    kind: Kind | None = container.kind
    if isinstance(kind, pa.MapType) and kind.key_type == STRING:
        return _looked_up(site, container, site.constant(name, STRING), kind)
    if isinstance(kind, pa.ListType) and isinstance(kind.value_type, pa.StructType):
        raise LeftToSpark("the fields of an array of structs are read by Spark")
    if not isinstance(kind, pa.StructType):
        raise site.refuse(f"{container.text} is {kinds.named(kind or INT)} and has no field {name!r}")
    found = [field for field in kind if field.name.lower() == name.lower()]
    if len(found) != 1:
        fact, hint = unknown_name("field", name, (field.name for field in kind))
        raise site.refuse(fact if not found else f"field {name!r} occurs twice in {container.text}", hint)
    return site.apply(found[0].type, container, options=(found[0].name,), nullable=container.nullable or found[0].nullable, name="field")
