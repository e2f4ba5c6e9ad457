"""A slow CABAC encoder in plain Python, from 9.3.1 and 9.3.4 word by word, and bins to encode."""

import numpy as np
from h264lite.cpu_simd.layout import BYPASS, TERMINATE
from h264lite.standard.cabac_contexts import NEXT_LPS, RANGE_LPS, initial_states


class Encoder:
    """9.3.4: contexts and the engine; `bits` of the code words so far."""

    def __init__(self, init: int, slice_qp: int) -> None:
        self.contexts = initial_states(init, slice_qp).tolist()
        self.bits: list[int] = []
        self.start()

    def start(self) -> None:
        self.low, self.range, self.first, self.outstanding = 0, 510, True, 0

    def put_bit(self, bit: int) -> None:
        """9.3.4.4, PutBit."""
        if self.first:
            self.first = False
        else:
            self.bits.append(bit)
        self.bits += [1 - bit] * self.outstanding
        self.outstanding = 0

    def shift(self) -> None:
        """One turn of RenormE, or of a bypass bin."""
        if self.low < 256 * self.scale:
            self.put_bit(0)
        elif self.low >= 512 * self.scale:
            self.low -= 512 * self.scale
            self.put_bit(1)
        else:
            self.low -= 256 * self.scale
            self.outstanding += 1

    scale = 1

    def renormalise(self) -> None:
        while self.range < 256:
            self.shift()
            self.range <<= 1
            self.low <<= 1

    def encode(self, context: int, bin_value: int) -> None:
        if context == BYPASS:
            self.low <<= 1
            if bin_value:
                self.low += self.range
            self.scale = 2
            self.shift()
            self.scale = 1
            return
        if context == TERMINATE:
            self.range -= 2
            if bin_value:
                self.low += self.range
                self.range = 2
                self.renormalise()
                self.put_bit(self.low >> 9 & 1)
                self.bits += [self.low >> 8 & 1, 1]
            else:
                self.renormalise()
            return
        index, mps = self.contexts[context] >> 1, self.contexts[context] & 1
        lps = int(RANGE_LPS[index, self.range >> 6 & 3])
        self.range -= lps
        if bin_value != mps:
            self.low += self.range
            self.range = lps
            self.contexts[context] = int(NEXT_LPS[index]) << 1 | (mps ^ (index == 0))
        else:
            self.contexts[context] = min(index + 1, 62) << 1 | mps
        self.renormalise()


def encoded(words: list[np.ndarray], samples: list[bytes], header: int, init: int, slice_qp: int) -> str:
    """A slice: zeros for its header, then code words, bins as in cpu_simd/cabac.py, each but the last followed by samples."""
    encoder = Encoder(init, slice_qp)
    text = "0" * header
    for n, word in enumerate(words):
        encoder.start()
        encoder.bits = []
        for symbol in word.tolist():
            encoder.encode(symbol >> 1, symbol & 1)
        text += "".join(map(str, encoder.bits))
        if n + 1 < len(words):
            text += "0" * (-len(text) % 8) + "".join(format(v, "08b") for v in samples[n])
    return text


def random_word(rng: np.random.Generator, size: int, contexts: np.ndarray, share: float, bypass: float = 0.15) -> np.ndarray:
    """uint16[size]: bins of random contexts, each with a probability of 1 near `share`; the last ends the engine."""
    likely = np.clip(rng.normal(share, 0.1, 1024), 0.0, 1.0)
    chosen = rng.choice(contexts, size) if len(contexts) else np.full(size, TERMINATE)
    symbols = chosen.astype(np.int64) << 1 | (rng.random(size) < likely[np.minimum(chosen, 1023)])
    kind = rng.random(size)
    symbols = np.where(kind < bypass, BYPASS << 1 | (rng.random(size) < 0.5), symbols)
    symbols = np.where(kind > 0.98, TERMINATE << 1, symbols)
    symbols = np.where(symbols >> 1 == TERMINATE, TERMINATE << 1, symbols)
    symbols[-1] = TERMINATE << 1 | 1
    return symbols.astype(np.uint16)
