"""SEI messages: captions and user data of an input, colours and light of an HDR display, recovery points."""

import re
import struct
from collections.abc import Sequence

from ..scheduler.coding_settings import CodingSettings
from ..scheduler.frame_spec import FrameSpec
from ..standard.bits import NAL_IDR, NAL_SEI, NAL_SLICE, nal_unit
from ..standard.syntax import SEI_USER_DATA_UNREGISTERED, write_sei
from ..standard.syntax_sei import SEI_RECOVERY_POINT, RecoveryPoint, write_recovery_point
from .info_sei import ENCODER_UUID
from .settings.groups import VideoSettings

Message = tuple[int, bytes]  # payloadType, payload
SEI_USER_DATA_REGISTERED = 4  # D.1.6
SEI_MASTERING_DISPLAY, SEI_CONTENT_LIGHT = 137, 144  # D.1.29, D.1.31
_ATSC = bytes((0xB5, 0x00, 0x31)) + b"GA94\x03"  # ITU-T T.35: USA, ATSC; ATSC A/53 Part 4, 6.2.3: cc_data
_MOST_CAPTIONS = 31  # cc_count has five bits
_LARGEST = 1 << 16  # bytes of a message
_OF_ENCODERS = (ENCODER_UUID, bytes.fromhex("dc45e9bde6d948b7962cd820d923eeef"))  # the latter of x264's options
_START = re.compile(b"\0?\0\0\1(.)", re.DOTALL)


def captions(cc_data: bytes) -> list[Message]:
    """ATSC A/53 Part 4, 6.2.3: the captions of a frame, three bytes each, as user data."""
    whole = len(cc_data) - len(cc_data) % 3
    chunks = [cc_data[at : min(whole, at + 3 * _MOST_CAPTIONS)] for at in range(0, whole, 3 * _MOST_CAPTIONS)]
    # process_cc_data_flag 1 and cc_count, em_data, cc_data, marker_bits
    return [(SEI_USER_DATA_REGISTERED, _ATSC + bytes((0x40 | len(chunk) // 3, 0xFF)) + chunk + b"\xff") for chunk in chunks]


def user_data(payload: bytes) -> list[Message]:
    """D.1.7: a UUID and data; none of the options of the encoder that made the input, which this one does not have."""
    is_kept = 16 <= len(payload) <= _LARGEST and payload[:16] not in _OF_ENCODERS
    return [(SEI_USER_DATA_UNREGISTERED, payload)] if is_kept else []


def of_display(video: VideoSettings) -> bytes:
    """D.1.29, D.1.31: RBSP of the messages on the mastering display and the content's light; empty without."""
    messages: list[Message] = []
    if video.mastering_display is not None:
        messages.append((SEI_MASTERING_DISPLAY, struct.pack(">8H2I", *video.mastering_display)))
    if video.cll is not None:
        messages.append((SEI_CONTENT_LIGHT, struct.pack(">2H", *video.cll)))
    return write_sei(messages) if messages else b""


def of_refresh(spec: FrameSpec, coding: CodingSettings) -> bytes:
    """D.2.8: RBSP of a recovery point where a cycle of intra refresh begins, empty elsewhere."""
    if not spec.refresh or spec.refresh[0]:
        return b""
    point = RecoveryPoint(recovery_frame_cnt=coding.refresh_frames - 1, exact_match_flag=1)
    return write_sei([(SEI_RECOVERY_POINT, write_recovery_point(point))])


def with_messages(access_unit: bytes, messages: Sequence[Message]) -> bytes:
    """7.4.1.2.3: an access unit, Annex B, with SEI messages in front of its first slice."""
    first = next((unit for unit in _START.finditer(access_unit) if unit[1][0] & 31 in (NAL_SLICE, NAL_IDR)), None)
    if first is None or not messages:
        return access_unit
    at = first.start()
    return access_unit[:at] + nal_unit(NAL_SEI, 0, write_sei(list(messages)), long_start_code=not at) + access_unit[at:]
