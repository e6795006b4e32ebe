"""How a node's deliveries of a superstep become invocations: together, in parts below a size, or each message apart."""

from collections.abc import Sequence

from hocket import v1
from hocket.records import Delivery
from hocket_server.core.merge import list_of


def together(deliveries: list[Delivery], limit: int) -> list[list[Delivery]]:
    """In order, each part at most `limit` bytes unless a single message or list is larger."""
    sizes = [[message.payload.ByteSize() for message in delivery.messages] for delivery in deliveries]
    if sum(map(sum, sizes)) <= limit:
        return [deliveries]
    parts: list[list[Delivery]] = []
    filled = limit + 1
    for piece, size in _pieces(deliveries, sizes):
        if filled + size > limit:
            parts.append([])
            filled = 0
        filled += size
        last = parts[-1]
        if last and not piece.joined and not last[-1].joined and last[-1].edge_group_id == piece.edge_group_id:
            last[-1].messages.extend(piece.messages)
        else:
            last.append(piece)
    return parts


def _pieces(deliveries: Sequence[Delivery], sizes: Sequence[Sequence[int]]) -> list[tuple[Delivery, int]]:
    """What cannot be cut further, with its size: a message, or a fan-in's list."""
    pieces: list[tuple[Delivery, int]] = []
    for delivery, own in zip(deliveries, sizes, strict=True):
        if delivery.joined:
            pieces.append((delivery, sum(own)))
        else:
            pieces.extend(
                (Delivery([message], delivery.edge_group_id), size)
                for message, size in zip(delivery.messages, own, strict=True)
            )
    return pieces


def apart(deliveries: list[Delivery]) -> list[list[Delivery]]:
    """One part for each message, and one for each list of a fan-in."""
    parts: list[list[Delivery]] = []
    for delivery in deliveries:
        if delivery.joined:
            parts.append([delivery])
        else:
            parts.extend([Delivery([message], delivery.edge_group_id)] for message in delivery.messages)
    return parts


def input_of(deliveries: Sequence[Delivery]) -> v1.Payload:
    """What a nested run begins with: the message, or a fan-in's list as one value."""
    delivery = deliveries[0]
    if delivery.joined:
        return list_of(message.payload for message in delivery.messages)
    return delivery.messages[0].payload
