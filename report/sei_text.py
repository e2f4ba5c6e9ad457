"""SEI messages in clear text: name, contents, how often a stream has them."""

from typing import Any

from ..standard.syntax import SEI_USER_DATA_UNREGISTERED

# D.1.1: payloadType
NAMES = {
    0: "buffering period", 1: "picture timing", 2: "pan-scan rectangle", 3: "filler payload",
    4: "user data registered by T.35", 5: "user data unregistered",
    6: "recovery point", 7: "reference picture marking repetition", 8: "spare picture",
    9: "scene information", 10: "sub-sequence information", 11: "sub-sequence layer characteristics",
    12: "sub-sequence characteristics", 13: "full-frame freeze", 14: "full-frame freeze release", 15: "full-frame snapshot",
    16: "progressive refinement segment start", 17: "progressive refinement segment end",
    18: "motion-constrained slice group set", 19: "film grain characteristics", 20: "deblocking filter display preference",
    21: "stereo video information", 45: "frame packing arrangement", 47: "display orientation",
    137: "mastering display colour volume", 144: "content light level information",
    147: "alternative transfer characteristics",
}  # fmt: skip
MOST_MESSAGES = 200  # distinct messages that are kept
LONGEST = 4000  # characters of a message
UUID_BYTES = 16


class SeiMessages:
    """`add` for each message of a stream."""

    def __init__(self) -> None:
        self._count: dict[tuple[int, str], int] = {}
        self._by_type: dict[int, int] = {}

    def add(self, payload_type: int, payload: bytes) -> None:
        """A message; those beyond the first MOST distinct ones of all types count by type alone."""
        self._by_type[payload_type] = self._by_type.get(payload_type, 0) + 1
        key = payload_type, _text(payload_type, payload)
        if key in self._count or len(self._count) < MOST_MESSAGES:
            self._count[key] = self._count.get(key, 0) + 1

    def as_list(self) -> list[dict[str, Any]]:
        """A row for each type: its name, the number of messages, and their distinct contents."""
        rows = []
        for payload_type, count in sorted(self._by_type.items()):
            texts = [text for message_type, text in self._count if message_type == payload_type]
            more = count - sum(n for (message_type, _), n in self._count.items() if message_type == payload_type)
            text = "\n".join(texts) + (f"\n... and {more} messages with other contents" if more else "")
            rows.append({"name": NAMES.get(payload_type, f"payload type {payload_type}"), "count": count, "text": text})
        return rows


def _text(payload_type: int, payload: bytes) -> str:
    """D.1.7: the UUID and text of user data; of other messages their bytes in hexadecimal."""
    if payload_type == SEI_USER_DATA_UNREGISTERED and len(payload) >= UUID_BYTES:
        words = payload[UUID_BYTES : UUID_BYTES + LONGEST].rstrip(b"\0").decode("utf-8", "replace")
        shown = "".join(letter if letter.isprintable() else "\N{MIDDLE DOT}" for letter in words)
        return f"{payload[:UUID_BYTES].hex()}: {shown}"
    return payload[: LONGEST // 3].hex(" ")
