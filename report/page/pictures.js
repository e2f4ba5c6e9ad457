// The pictures of a coded video by the browser's decoder (WebCodecs): exact samples of any frame; those near the last one
// are kept.

const PICTURE_BYTES = 192 << 20; // of decoded frames that are kept
const QUEUE = 6; // access units that wait in the decoder

class Pictures {
  // prefix: of the names of its data; access: [group, first byte, bytes, is_key] by coding number; coded: coding number by
  // frame; display: frame by coding number, undefined for pictures that are never shown.
  constructor({ prefix, codec, access, coded, display }) {
    Object.assign(this, { prefix, codec, access, coded, display });
    this.kept = new Map(); // pictures by frame
    this.bytes = 0;
    this.groups = new Map();
    this.delivered = new Set(); // frames since the last reset of the decoder
    this.next = 0; // coding number of the next access unit
    this.wanted = -1;
    this.work = Promise.resolve();
    this.failure = "";
    this.most = Infinity; // frames that fit in PICTURE_BYTES
  }

  // Why frame n has no picture; "" if it has one.
  reason(n) {
    const isFirst = this.access[this.keyBefore(this.coded(n))][3];
    return this.failure || (isFirst ? "" : "The picture cannot be shown: the stream does not begin with an IDR picture.");
  }

  // The samples of frame n, or null: not decodable, or another frame is wanted by now.
  get(n) {
    this.wanted = n;
    if (this.reason(n)) return Promise.resolve(null);
    if (this.kept.has(n)) return Promise.resolve(this.kept.get(n));
    const result = this.work
      .then(() => (this.wanted === n ? this.decodeTo(n) : (this.kept.get(n) ?? null)))
      .catch((error) => {
        this.fail(error);
        return null;
      });
    this.work = result;
    return result;
  }

  fail(error) {
    this.failure ||= `The picture cannot be shown: ${error.message || error}`;
    this.decoder = null;
  }

  async start(at) {
    if (typeof VideoDecoder === "undefined") throw new Error("this browser has no WebCodecs");
    if (!this.decoder || this.decoder.state === "closed") {
      this.decoder = new VideoDecoder({ output: (frame) => this.take(frame), error: (error) => this.fail(error) });
    } else this.decoder.reset();
    const config = { codec: this.codec, hardwareAcceleration: "prefer-software" };
    if (!(await VideoDecoder.isConfigSupported(config)).supported)
      throw new Error(`this browser does not decode ${this.codec}`);
    this.decoder.configure(config);
    this.delivered.clear();
    this.next = at;
  }

  keyBefore(coded) {
    while (coded > 0 && !this.access[coded][3]) coded--;
    return coded;
  }

  async decodeTo(n) {
    if (this.failure) return null;
    const coded = this.coded(n),
      key = this.keyBefore(coded);
    if (!this.decoder || this.decoder.state !== "configured" || this.ended || this.next <= key || this.delivered.has(n)) {
      await this.start(key);
      this.ended = false;
    }
    while (!this.delivered.has(n)) {
      if (this.failure || this.wanted !== n) return null;
      if (this.next === this.access.length) {
        this.ended = true;
        await this.decoder.flush();
        await this.copies;
        if (!this.delivered.has(n)) throw new Error(`the browser's decoder left out frame ${n}`);
      } else if (this.decoder.decodeQueueSize >= QUEUE) {
        await new Promise((resolve) => this.decoder.addEventListener("dequeue", resolve, { once: true }));
      } else {
        const [group, begin, size, isKey] = this.access[this.next];
        const data = (await this.group(group)).subarray(begin, begin + size);
        const timestamp = 1000 * (this.display(this.next) ?? -1 - this.next);
        this.decoder.decode(new EncodedVideoChunk({ type: isKey ? "key" : "delta", timestamp, data }));
        this.next++;
      }
    }
    await this.kept.get(n);
    return this.kept.get(n) ?? null;
  }

  async group(number) {
    if (!this.groups.has(number)) {
      if (this.groups.size > 3) this.groups.delete(this.groups.keys().next().value);
      this.groups.set(number, await piece(`${this.prefix}${number}`));
    }
    return this.groups.get(number);
  }

  take(frame) {
    const n = frame.timestamp / 1000;
    this.delivered.add(n);
    if (n < 0 || Math.abs(n - this.wanted) > this.most / 2) {
      frame.close();
      return;
    }
    const { width, height } = frame.visibleRect,
      format = frame.format,
      colorSpace = frame.colorSpace.toJSON();
    const data = new Uint8Array(frame.allocationSize());
    const picture = frame
      .copyTo(data)
      .then((layout) => {
        const decoded = { width, height, format, colorSpace, data, layout };
        this.kept.set(n, decoded);
        return decoded;
      })
      .finally(() => frame.close());
    this.copies = Promise.all([this.copies, picture]);
    this.kept.set(n, picture);
    this.most = Math.max(4, Math.floor(PICTURE_BYTES / data.length));
    while (this.kept.size > this.most) {
      // the farthest ones go
      let farthest = n;
      for (const k of this.kept.keys()) if (Math.abs(k - this.wanted) > Math.abs(farthest - this.wanted)) farthest = k;
      this.kept.delete(farthest);
    }
  }
}

// One plane of a picture as bytes without gaps: 0 luma, 1 Cb, 2 Cr.
function plane(picture, number) {
  const half = number ? 1 : 0,
    width = (picture.width + half) >> half,
    height = (picture.height + half) >> half;
  const interleaved = picture.format.startsWith("NV") && number;
  const { offset, stride } = picture.layout[interleaved ? 1 : number];
  const out = new Uint8Array(width * height),
    step = interleaved ? 2 : 1,
    first = offset + (interleaved ? number - 1 : 0);
  for (let y = 0; y < height; y++) {
    if (step === 1) out.set(picture.data.subarray(first + y * stride, first + y * stride + width), y * width);
    else for (let x = 0; x < width; x++) out[y * width + x] = picture.data[first + y * stride + 2 * x];
  }
  return out;
}

function paintPicture(context, picture) {
  const frame = new VideoFrame(picture.data, {
    format: picture.format,
    codedWidth: picture.width,
    codedHeight: picture.height,
    timestamp: 0,
    layout: picture.layout,
    colorSpace: picture.colorSpace,
  });
  context.drawImage(frame, 0, 0);
  frame.close();
}

// Luma of `first` minus luma of `second`, times `gain`, around grey.
function paintDifference(context, first, second, gain) {
  const a = plane(first, 0),
    b = plane(second, 0),
    image = context.createImageData(first.width, first.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let k = 0; k < a.length; k++) {
    const value = Math.min(255, Math.max(0, 128 + gain * (a[k] - b[k])));
    pixels[k] = 0xff000000 | (value << 16) | (value << 8) | value;
  }
  context.putImageData(image, 0, 0);
}
