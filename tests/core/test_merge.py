"""Two writers of one key in one superstep (G23)."""

import decimal
import json

import pytest

from hocket import v1
from hocket.records import StateWrite
from hocket_server.core.merge import ConflictError, Writer, element_of, list_of, merge

REJECT, LAST = v1.MERGE_POLICY_REJECT, v1.MERGE_POLICY_LAST_WRITER
APPEND, MERGE, SUM = v1.MERGE_POLICY_APPEND, v1.MERGE_POLICY_MERGE, v1.MERGE_POLICY_SUM


def value(plain: object, name: str = "") -> v1.Payload:
    names = {str: "string", bool: "bool", int: "int", float: "float", dict: "map<any>", list: "list<any>"}
    return v1.Payload(type=name or names[type(plain)], data=json.dumps(plain).encode())


NULL = v1.Payload(type="null")


def wrote(*values: v1.Payload | None, by: str = "a", key: str = "k") -> Writer:
    return Writer(by, f"r/2/{by}", [StateWrite(key, each) for each in values])


def after(policy: v1.MergePolicy.ValueType, *writers: Writer, before: v1.Payload | None = None) -> v1.Payload:
    return merge({} if before is None else {"k": before}, {"k": policy}, writers)["k"]


def shown(payload: v1.Payload) -> tuple[str, object]:
    return payload.type, json.loads(payload.data)


# reject


def test_a_key_without_a_policy_has_one_writer() -> None:
    with pytest.raises(ConflictError, match=r"'k' was written by 'a' and by 'b' .* declare a merge policy"):
        merge({}, {}, [wrote(value(1)), wrote(value(1), by="b")])


def test_a_writer_may_write_as_often_as_it_likes() -> None:
    assert shown(after(REJECT, wrote(value(1), value(2)))) == ("int", 2)


def test_a_deletion_is_a_write() -> None:
    with pytest.raises(ConflictError, match="by 'a' and by 'b'"):
        merge({"k": value(1)}, {}, [wrote(None), wrote(value(1), by="b")])


def test_two_invocations_of_one_node_are_two_writers() -> None:
    writers = [Writer("a", f"r/2/a#{number}", [StateWrite("k", value(number))]) for number in (1, 2)]
    with pytest.raises(ConflictError, match="by 'a' and by 'a'"):
        merge({}, {}, writers)


def test_writers_of_different_keys_do_not_meet() -> None:
    state = merge({"old": value(0)}, {}, [wrote(value(1)), wrote(value(2), by="b", key="other")])
    assert {key: shown(each)[1] for key, each in state.items()} == {"old": 0, "k": 1, "other": 2}


def test_what_was_committed_is_not_changed_by_a_merge() -> None:
    before = {"k": value([1], "list<int>"), "gone": value(1)}
    held = {key: each.SerializeToString() for key, each in before.items()}
    merge(before, {"k": APPEND}, [wrote(value(2)), wrote(None, key="gone")])
    assert {key: each.SerializeToString() for key, each in before.items()} == held


# last_writer


def test_of_several_the_last_by_position_stays() -> None:
    assert shown(after(LAST, wrote(value("a")), wrote(value("b"), by="b"), before=value("old"))) == ("string", "b")


def test_the_last_may_delete() -> None:
    assert merge({"k": value(1)}, {"k": LAST}, [wrote(value(2)), wrote(None, by="b")]) == {}


# append


def test_each_write_is_one_more_element() -> None:
    appended = after(APPEND, wrote(value(1), value(2)), wrote(value(3), by="b"))
    assert shown(appended) == ("list<int>", [1, 2, 3])
    assert list(appended.supertypes) == ["list<any>"]


def test_a_single_write_is_a_contribution_too() -> None:
    assert shown(after(APPEND, wrote(value([1, 2], "list<int>")))) == ("list<any>", [[1, 2]])


def test_elements_of_different_types_make_a_list_of_any() -> None:
    assert shown(after(APPEND, wrote(value(1), value("two"), NULL))) == ("list<any>", [1, "two", None])


def test_an_element_whose_json_does_not_show_its_type_is_tagged() -> None:
    appended = after(APPEND, wrote(value("1.50", "decimal"), value({"x": 1}, "acme.Order")))
    expected = [{"$type": "decimal", "$value": "1.50"}, {"$type": "acme.Order", "$value": {"x": 1}}]
    assert shown(appended) == ("list<any>", expected)


def test_raw_bytes_become_base64() -> None:
    raw = v1.Payload(type="bytes", content_type="application/octet-stream", data=b"\xff\x00")
    assert json.loads(element_of(raw)) == {"$type": "bytes", "$value": "/wA="}


@pytest.mark.parametrize("before", [b"[]", b"[ ]", b" [] \n"])
def test_an_empty_list_of_any_language_takes_its_first_element(before: bytes) -> None:
    assert json.loads(after(APPEND, wrote(value(1)), before=v1.Payload(type="list<any>", data=before)).data) == [1]


@pytest.mark.parametrize("before", [b"[1]", b"[ 1 ]", b"[1]\n"])
def test_so_does_one_that_has_elements(before: bytes) -> None:
    appended = after(APPEND, wrote(value(2)), before=v1.Payload(type="list<int>", data=before))
    assert shown(appended) == ("list<int>", [1, 2])


def test_only_to_a_list_is_appended() -> None:
    with pytest.raises(ConflictError, match=r"policy append; it takes a list, not 'string'"):
        after(APPEND, wrote(value(1)), before=value("text"))


# merge


def test_maps_are_merged_key_by_key_in_order_of_position() -> None:
    merged = after(
        MERGE, wrote(value({"a": 1, "k": "a"})), wrote(value({"b": 2, "k": "b"}), by="b"), before=value({"o": 0})
    )
    assert shown(merged) == ("map<any>", {"o": 0, "a": 1, "k": "b", "b": 2})


def test_maps_of_one_type_stay_of_it() -> None:
    one = v1.Payload(type="map<int>", supertypes=["map<any>"], data=b'{"a":1}')
    merged = after(MERGE, wrote(one), before=v1.Payload(type="map<int>", data=b'{"b":2}'))
    assert (*shown(merged), list(merged.supertypes)) == ("map<int>", {"a": 1, "b": 2}, ["map<any>"])
    assert shown(after(MERGE, wrote(one), before=value({"b": "text"})))[0] == "map<any>"


def test_text_and_large_numbers_in_maps_stay_exact() -> None:
    merged = after(MERGE, wrote(value({"é👩🏽‍🚀": 2**70})), before=value({"x": 1.5}))
    assert json.loads(merged.data) == {"x": 1.5, "é👩🏽‍🚀": 2**70}


@pytest.mark.parametrize(("before", "write"), [(None, value(1)), (value({}), value([1])), (value("text"), value({}))])
def test_only_maps_are_merged(before: v1.Payload | None, write: v1.Payload) -> None:
    with pytest.raises(ConflictError, match="policy merge; it takes a map with text keys"):
        after(MERGE, wrote(write), before=before)


# sum


@pytest.mark.parametrize(
    ("before", "write", "total"),
    [
        (value(1), value(2), ("int", 3)),
        (value(2**70), value(1), ("int", 2**70 + 1)),
        (value(1), value(0.5), ("float", 1.5)),
        (value("0.10", "decimal"), value("0.20", "decimal"), ("decimal", "0.30")),
        (value("0.1", "decimal"), value(1), ("decimal", "1.1")),
        (value("1E+40", "decimal"), value("0.01", "decimal"), ("decimal", "1" + "0" * 40 + ".01")),
    ],
)
def test_numbers_are_added(before: v1.Payload, write: v1.Payload, total: tuple[str, object]) -> None:
    assert shown(after(SUM, wrote(write), before=before)) == total


def test_decimals_are_added_alike_whatever_the_process_rounds_to() -> None:
    with decimal.localcontext(prec=2):
        assert shown(after(SUM, wrote(value("1.005", "decimal")), before=value("1", "decimal")))[1] == "2.005"


def test_a_deletion_begins_anew() -> None:
    assert shown(after(SUM, wrote(value(1), None, value(5)), before=value(100))) == ("int", 5)
    assert merge({"k": value(1)}, {"k": SUM}, [wrote(None)]) == {}


@pytest.mark.parametrize(
    ("before", "write"),
    [
        (None, value("1")),
        (None, value(True)),
        (value("text"), value(1)),
        (value("1", "decimal"), value(1.5)),
        (value(1e308), value(1e308)),
        (value(10**400), value(0.5)),
        (value("1E+9999", "decimal"), value("1", "decimal")),
        (value(1), v1.Payload(type="int", data=b"1.5")),
        (value(1), v1.Payload(type="int", data=b"1" * 5000)),
        (value(1), v1.Payload(type="decimal", data=b'"none"')),
    ],
)
def test_what_is_no_number_or_has_no_exact_total_is_a_conflict(before: v1.Payload | None, write: v1.Payload) -> None:
    with pytest.raises(ConflictError, match="state key 'k'"):
        after(SUM, wrote(write), before=before)


# What any worker may send


@pytest.mark.parametrize("policy", [APPEND, MERGE, SUM])
def test_a_value_in_the_blob_store_cannot_be_merged(policy: v1.MergePolicy.ValueType) -> None:
    blob = v1.Payload(type="list<int>", blob=v1.BlobRef(uri="blob:1", size_bytes=9_000_000))
    with pytest.raises(ConflictError, match=r"9000000 bytes lies in the blob store"):
        after(policy, wrote(value(1)), before=blob)
    with pytest.raises(ConflictError, match=r"9000000 bytes lies in the blob store"):
        after(policy, wrote(blob))


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b'{"a":1e999}', b"\xff"])
def test_broken_json_is_a_conflict_and_stops_nothing_else(data: bytes) -> None:
    with pytest.raises(ConflictError, match="state key 'k'"):
        after(MERGE, wrote(v1.Payload(type="map<any>", data=data)), before=value({"b": 1}))


def test_a_list_of_payloads_is_of_their_type_when_they_have_one() -> None:
    assert shown(list_of([value(1), value(2)])) == ("list<int>", [1, 2])
    assert shown(list_of([value(1), value("two")])) == ("list<any>", [1, "two"])
    assert shown(list_of([])) == ("list<any>", [])
