import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator.ipc.build_request import MAX_ITEMS, MAX_TEXT_BYTES, BuildOutcome, BuildRequest

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
    st.sampled_from(["none", "light", "full"]),
    st.booleans(),
    st.floats(allow_nan=False),
    texts,
    st.booleans(),
)


@given(requests)
def test_a_request_survives_the_crossing(request):
    assert BuildRequest.decode(request.encode()) == request


@given(outcomes)
def test_an_outcome_survives_the_crossing(outcome):
    assert BuildOutcome.decode(outcome.encode()) == outcome


@given(st.binary(max_size=400), st.sampled_from([b"", b"KRQ3", b"KRO3"]))
@example(b"\xff\xff\xff\xff", b"KRQ3")
@example(b"\x01\x00\x00\x00\xff", b"KRQ3")
def test_noise_is_a_value_error(noise, magic):
    for decode in (BuildRequest.decode, BuildOutcome.decode):
        try:
            decode(magic + noise)
        except ValueError:
            continue


@given(requests, st.integers(1, 30))
def test_every_truncation_and_every_addition_is_refused(request, size):
    message = request.encode()
    with pytest.raises(ValueError):
        BuildRequest.decode(message[:-size])
    with pytest.raises(ValueError):
        BuildRequest.decode(message + b"\0" * size)


def test_limits_hold_on_both_sides():
    with pytest.raises(ValueError):
        BuildRequest("x", ("y" * (MAX_TEXT_BYTES + 1),)).encode()
    with pytest.raises(ValueError):
        BuildRequest("x", ("",) * (MAX_ITEMS + 1)).encode()
    claims_much = b"KRQ3" + (1).to_bytes(4, "little") + b"x" + (2**31).to_bytes(4, "little")
    with pytest.raises(ValueError):
        BuildRequest.decode(claims_much)


def test_unknown_kind_of_headers_is_refused():
    message = BuildOutcome(True, "", "light").encode().replace(b"light", b"heavy")
    with pytest.raises(ValueError):
        BuildOutcome.decode(message)


def test_a_pair_of_three_is_refused():
    message = BuildRequest("x", functions=(("a", "b"),)).encode()
    pair = (2).to_bytes(4, "little") + b"\1\0\0\0a"
    with pytest.raises(ValueError):
        BuildRequest.decode(message.replace(pair, (3).to_bytes(4, "little") + pair[4:]))
