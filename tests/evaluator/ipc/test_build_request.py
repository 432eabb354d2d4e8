import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator.ipc.build_request import (
    MAX_ITEMS,
    MAX_TEXT_BYTES,
    BuildOutcome,
    BuildRequest,
    decode_outcome,
    decode_request,
    encode_outcome,
    encode_request,
)

texts = st.text(st.characters(codec="utf-8"), max_size=50)
many = st.lists(texts, max_size=4).map(tuple)
pairs = st.lists(st.tuples(texts, texts), max_size=4).map(tuple)
requests = st.builds(
    BuildRequest,
    *(texts, many, many, pairs, many, many, many, pairs, pairs, many, st.booleans(), st.booleans()),
)
outcomes = st.builds(
    BuildOutcome,
    st.booleans(),
    texts,
    texts,
    st.sampled_from(["none", "light", "full"]),
    st.booleans(),
    st.floats(allow_nan=False),
    texts,
    st.booleans(),
)


@given(requests)
def test_a_request_survives_the_crossing(request):
    assert decode_request(encode_request(request)) == request


@given(outcomes)
def test_an_outcome_survives_the_crossing(outcome):
    assert decode_outcome(encode_outcome(outcome)) == outcome


@given(st.binary(max_size=400), st.sampled_from([b"", b"KRQ2", b"KRO1"]))
@example(b"\xff\xff\xff\xff", b"KRQ2")
@example(b"\x01\x00\x00\x00\xff", b"KRQ2")
def test_noise_is_a_value_error(noise, magic):
    for decode in (decode_request, decode_outcome):
        try:
            decode(magic + noise)
        except ValueError:
            continue


@given(requests, st.integers(1, 30))
def test_every_truncation_and_every_addition_is_refused(request, size):
    message = encode_request(request)
    with pytest.raises(ValueError):
        decode_request(message[:-size])
    with pytest.raises(ValueError):
        decode_request(message + b"\0" * size)


def test_limits_hold_on_both_sides():
    with pytest.raises(ValueError):
        encode_request(BuildRequest("x", ("y" * (MAX_TEXT_BYTES + 1),)))
    with pytest.raises(ValueError):
        encode_request(BuildRequest("x", ("",) * (MAX_ITEMS + 1)))
    claims_much = b"KRQ2" + (1).to_bytes(4, "little") + b"x" + (2**31).to_bytes(4, "little")
    with pytest.raises(ValueError):
        decode_request(claims_much)


def test_unknown_kind_of_headers_is_refused():
    message = encode_outcome(BuildOutcome(True, "", "m", "light")).replace(b"light", b"heavy")
    with pytest.raises(ValueError):
        decode_outcome(message)
