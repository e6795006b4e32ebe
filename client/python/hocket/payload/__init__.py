"""Payloads: users' values as named JSON that every language reads, and back as exactly what they were.

A payload is a name and bytes. The name says all that a reader needs: bytes are written by it and read by it, whatever
annotation the sender had. So `list[set[date]]` is sent as `list<set>`, whose elements hold what they are themselves.

    Python                  name                  JSON
    str                     string                text; a lone surrogate and U+0000 are refused, in keys too
    int                     int                   digits, however many
    float                   float                 always with a point or an exponent, -0.0 kept; 1 is read as 1.0
    bool, None              bool, null            true, false; null, as a payload no value at all
    list[T]                 list<T>               array;  T is `any` where no one name tells: Any, a union
    dict[str, T]            map<T>                object
    dict with other keys    map                   [[key, value], ...], also where a key is "$type"
    bytes                   bytes                 base64; as a payload raw, application/octet-stream
    datetime, time          datetime, time        "2024-10-27T02:30:00+01:00[Europe/Berlin]", as RFC 9557; none for naive;
                                                  [name=CET] for a named offset; [fold=1] where the offset does not tell
    date                    date                  "2024-02-29"
    timedelta               duration              "-1.500001s", as protobuf's Duration
    Decimal, UUID           decimal, uuid         "1.10", digits and scale kept; "6d262759-..."
    a concrete POSIX path   path                  "/a/b"
    other paths             path                  {"kind": "pure_posix" | "windows" | "pure_windows", "path": "C:\\\\x"}
    set, frozenset          set, frozenset        array, sorted by the elements' JSON text
    tuple                   tuple                 array
    enum                    its class's           the value where all values are text or numbers, else the member's name
    dataclass, pydantic     its class's           object of its fields, by field name; pydantic's extras too
    TypedDict               its class's           object; only where an annotation declares it
    named tuple             its class's           array
    protobuf message        its full name         base64; as a payload raw, application/protobuf

A class is called by its protobuf full name, by its own `__hocket_type__` (which subclasses do not inherit), or by module
and qualified name. Supertypes are its bases in MRO order, those of libraries left out: `string` for an enum of strings.

Where JSON does not show the type, a value stands in an envelope, `{"$type": name, "$value": JSON}`, and an object with
a key "$type" is always an envelope. In a field or element with an annotation, a value of exactly the one class declared
there (or None, if that is allowed) is bare, and any other stands in an envelope, even a number: an int in a field
`price: float` is `{"$type": "int", "$value": 3}`. With allow_nonfinite, a float that is none is
`{"$type": "float", "$value": "NaN" | "Infinity" | "-Infinity"}`, and a decimal has the like as its text.

What comes back. A class known here (registered, met, or named by what is expected), or below an expected one, comes back
as exactly itself. Of a class not known here, the nearest expected supertype is made, without the fields it adds. Where
anything will do, an unknown one is its plain JSON, or stays in its envelope if nested. All else is a PayloadError that
names both types. A dataclass gets the fields it had; `__init__` runs only where `__post_init__` may make more than
fields. A field the data lacks takes its default; one the class lacks is refused. A pydantic model is validated, by field
name. Private attributes, and which fields were set, do not travel. An offset comes back as `timezone`, and one that its
zone does not have then is refused, like digits below a microsecond.

Refused when sent, with path and type: what is not in the table, so locks, generators, ranges, complex, arrays and their
scalars, other subclasses of builtins; cycles; what is not finite; values that do not fit the annotation of their field;
JSON deeper than 200. JSON that is read is held to the same, and to one value, UTF-8, no key twice and no float too big.
"""

from hocket.payload.annotation import is_native, payload_type, type_name, type_names
from hocket.payload.codec import Codec

__all__ = ["Codec", "is_native", "payload_type", "type_name", "type_names"]
