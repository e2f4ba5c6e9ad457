"""Header bits, NAL units and byte streams: round trips, broken input, and what an escape must not leave."""

import pytest
from h264lite.standard.bits import (
    MAX_SE,
    MAX_UE,
    NAL_SPS,
    BitReader,
    BitstreamError,
    BitWriter,
    ByteStreamSplitter,
    escape,
    nal_unit,
    parse_nal_unit,
    split_byte_stream,
    unescape,
)
from hypothesis import given, settings
from hypothesis import strategies as st

elements = st.one_of(
    st.tuples(st.just("ue"), st.integers(0, MAX_UE)),
    st.tuples(st.just("se"), st.integers(-MAX_SE, MAX_SE)),
    st.integers(0, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, (1 << n) - 1))),
    st.tuples(st.just("te"), st.integers(0, 1)),
)
# bytes in which forbidden sequences are frequent
rbsps = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 255]), max_size=60).map(bytes)


@settings(deadline=None)
@given(st.lists(elements))
def test_elements_round_trip(values):
    writer = BitWriter()
    for kind, value in values:
        if kind == "ue":
            writer.put_ue(value)
        elif kind == "se":
            writer.put_se(value)
        elif kind == "te":
            writer.put_te(value, 1)
        else:
            writer.put_u(kind, value)
    assert len(writer.to_bytes()) == (writer.position + 7) // 8
    end = writer.position
    writer.trailing_bits()
    reader = BitReader(writer.to_bytes())
    for kind, value in values:
        assert reader.more_rbsp_data() or kind == 0
        if kind == "ue":
            assert reader.get_ue() == value
        elif kind == "se":
            assert reader.get_se() == value
        elif kind == "te":  # 9.1: the inverse of a bit, for the range 0..1
            assert reader.get_u(1) == 1 - value
        else:
            assert reader.get_u(kind) == value
    assert reader.position == end
    assert not reader.more_rbsp_data()
    reader.trailing_bits()


def test_exp_golomb_codes():
    """Table 9-2 and Table 9-3: the first codes."""
    for value, code in ((0, "1"), (1, "010"), (2, "011"), (3, "00100"), (6, "00111"), (7, "0001000")):
        writer = BitWriter()
        writer.put_ue(value)
        assert format(int.from_bytes(writer.to_bytes(), "big"), "08b")[: writer.position] == code
    for value, code_num in ((0, 0), (1, 1), (-1, 2), (2, 3), (-2, 4)):
        one, other = BitWriter(), BitWriter()
        one.put_se(value)
        other.put_ue(code_num)
        assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 9, b"\x01", b"\0\0\0\0\x01"])
def test_reader_ends(data):
    reader = BitReader(data)
    with pytest.raises(BitstreamError):
        reader.get_ue()
    with pytest.raises(BitstreamError):
        reader.get_u(8 * len(data) + 1)
    assert reader.position == 0
    if not data.strip(b"\0"):
        with pytest.raises(BitstreamError):
            reader.trailing_bits()
        assert not reader.more_rbsp_data()


def test_trailing_zero_words():
    """cabac_zero_words after the trailing bits are no data."""
    reader = BitReader(b"\xa8\0\0\0\0")  # 1010 1000: four bits, then rbsp_stop_one_bit
    assert reader.get_u(4) == 10
    assert not reader.more_rbsp_data()
    reader.trailing_bits()


def test_writer_refuses():
    writer = BitWriter()
    for call in (lambda: writer.put_u(3, 8), lambda: writer.put_u(3, -1), lambda: writer.put_ue(-1)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError):
        writer.put_ue(MAX_UE + 1)


def naive_escape(rbsp):
    out, zeros = bytearray(), 0
    for byte in rbsp:
        if zeros == 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out) + (b"\3" if out and out[-1] == 0 else b"")


@settings(deadline=None)
@given(rbsps)
def test_escape(rbsp):
    payload = escape(rbsp)
    assert payload == naive_escape(rbsp)
    assert not any(code in payload for code in (b"\0\0\0", b"\0\0\1", b"\0\0\2"))
    assert unescape(payload) == rbsp or rbsp.endswith(b"\0")


@settings(deadline=None)
@given(st.lists(rbsps, min_size=1, max_size=5), st.data())
def test_byte_stream(payloads, data):
    payloads = [payload + b"\x80" for payload in payloads]
    long_codes = data.draw(st.lists(st.booleans(), min_size=len(payloads), max_size=len(payloads)))
    zeros = data.draw(st.integers(0, 3))
    stream = b"\0" * zeros
    for payload, long_code in zip(payloads, long_codes):
        stream += nal_unit(NAL_SPS, 3, payload, long_code) + b"\0" * zeros
    units = list(split_byte_stream(stream))
    assert [unit.rbsp() for unit in units] == payloads
    for unit in units:
        assert (unit.nal_unit_type, unit.nal_ref_idc) == (NAL_SPS, 3)
        assert stream[unit.offset :].startswith(unit.data)
    step = data.draw(st.integers(1, 9))
    splitter = ByteStreamSplitter()
    pieces = []
    for i in range(0, len(stream), step):
        pieces += splitter.feed(stream[i : i + step])
    pieces += splitter.flush()
    assert pieces == [(unit.offset, unit.data) for unit in units]


def test_not_a_byte_stream():
    for stream in (b"RIFF", b"\0\0\5\0\0\1\x67"):
        with pytest.raises(BitstreamError) as error:
            list(split_byte_stream(stream))
        assert error.value.position == 0
    assert list(split_byte_stream(b"")) == []
    assert list(split_byte_stream(b"\0\0\0\0")) == []
    with pytest.raises(BitstreamError, match="forbidden_zero_bit"):
        parse_nal_unit(b"\x80", 17)
    with pytest.raises(BitstreamError):
        parse_nal_unit(b"")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_reader_never_leaves(data):
    """Any bytes: values or a BitstreamError, and the position stays inside."""
    reader = BitReader(data)
    try:
        while True:
            reader.get_ue()
            reader.get_se()
            reader.get_u(5)
    except BitstreamError as error:
        assert error.position is not None and 0 <= error.position <= 8 * len(data)
    assert reader.position <= 8 * len(data)
