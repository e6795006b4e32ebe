"""Payloads: users' values as named JSON that every language can read, and back as exactly what they were."""

from hocket.payload.annotation import is_native, payload_type, type_name, type_names
from hocket.payload.codec import Codec

__all__ = ["Codec", "is_native", "payload_type", "type_name", "type_names"]
