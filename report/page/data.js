// The data of the page: pieces by name, decompressed on demand; the arrays of a frame as typed arrays.

const META = JSON.parse(document.getElementById("meta").textContent);
const TYPES = META.constants.types,
  FRAME_TYPES = META.constants.frame_types;
const TYPED = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array };
const [
  I_4x4,
  I_8x8,
  I_16x16,
  I_PCM,
  P_16x16,
  P_16x8,
  P_8x16,
  P_8x8,
  P_SKIP,
  B_SKIP,
  B_DIRECT,
  B_16x16,
  B_16x8,
  B_8x16,
  B_8x8,
] = TYPES.map((_, k) => k);
const isIntra = (type) => type <= I_PCM;
const isSkip = (type) => type === P_SKIP || type === B_SKIP;
const SUB_DIRECT = 4;
const VECTORS = [0, 1, 4, 16]; // by detail
const ARRAYS_KEPT = 1 << 26; // bytes of arrays of frames that are kept

const waiting = new Map(); // pieces of the folder that are on their way
window.reportData = (key, text) => {
  waiting.get(key)?.(text);
  waiting.delete(key);
};

function fromBase64(text) {
  const characters = atob(text),
    bytes = new Uint8Array(characters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = characters.charCodeAt(k);
  return bytes;
}

function fromFolder(key) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    waiting.set(key, resolve);
    script.onload = () => script.remove();
    script.onerror = () => reject(new Error(`${META.folder}/${key}.js is missing: keep the folder beside the page`));
    script.src = `${encodeURIComponent(META.folder)}/${key}.js`;
    document.head.append(script);
  });
}

async function piece(key) {
  const script = document.getElementById(key);
  return fromBase64(script ? script.textContent : await fromFolder(key));
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The macroblocks of one frame. Where things of a macroblock begin in sections of their own is found once.
class Arrays {
  constructor(buffer) {
    const sections = META.constants.sections,
      lengths = new Uint32Array(buffer, 0, sections.length);
    let at = 4 * sections.length;
    sections.forEach(([name, dtype], k) => {
      const TypedArray = TYPED[dtype];
      this[name] = new TypedArray(buffer, at, lengths[k] / TypedArray.BYTES_PER_ELEMENT);
      at += lengths[k] + ((4 - (lengths[k] % 4)) % 4);
    });
    this.size = buffer.byteLength;
    const n = (this.n = this.type.length);
    this.vectorAt = new Int32Array(2 * n);
    this.refAt = new Int32Array(n);
    this.subAt = new Int32Array(n);
    this.intraAt = new Int32Array(n);
    let vectors = 0,
      refs = 0,
      subs = 0,
      modes = 0;
    for (let k = 0; k < n; k++) {
      const detail = this.detail[k],
        type = this.type[k];
      this.vectorAt[2 * k] = vectors;
      this.vectorAt[2 * k + 1] = vectors += VECTORS[detail & 3];
      vectors += VECTORS[detail >> 2];
      this.refAt[k] = refs;
      this.subAt[k] = subs;
      this.intraAt[k] = modes;
      if (detail) refs += 8;
      if (type === P_8x8 || type === B_8x8) subs += 4;
      if (type === I_4x4) modes += 16;
      else if (type === I_8x8) modes += 4;
    }
  }
  transform8x8(mb) {
    return this.modes[mb] & 1;
  }
  chromaMode(mb) {
    return (this.modes[mb] >> 1) & 3;
  }
  mode16x16(mb) {
    return (this.modes[mb] >> 3) & 3;
  }
  reference(mb, list, quadrant) {
    return this.detail[mb] ? this.ref[this.refAt[mb] + 4 * list + quadrant] : -1;
  }
  // Bits of a kind of syntax elements; the residual's root mean square.
  bitsOf(kind, mb) {
    return this.kinds[kind * this.n + mb] / META.constants.kind_scale;
  }
  residual(mb) {
    return this.energy[mb] / META.constants.energy_scale / 16;
  }
  // The vector of a 4x4 block in raster order, quarter samples; null where the list is not used.
  vectorOf(mb, list, block) {
    const quadrant = (block >> 3) * 2 + ((block >> 1) & 1);
    if (this.reference(mb, list, quadrant) < 0) return null;
    const pieces = (this.detail[mb] >> (2 * list)) & 3;
    const at = 2 * (this.vectorAt[2 * mb + list] + (pieces === 1 ? 0 : pieces === 2 ? quadrant : block));
    return [this.vector[at], this.vector[at + 1]];
  }
}

class Stream {
  constructor(meta, number) {
    Object.assign(this, meta);
    this.number = number;
    this.fps = this.rate[0] / this.rate[1];
    this.mbs = this.mb_width * this.mb_height;
    this.byCoded = []; // display number by coding number
    this.frames.forEach((frame, n) => {
      frame.n = n;
      this.byCoded[frame.coded] = n;
    });
    this.inCodingOrder = this.frames.map((_, n) => n).sort((a, b) => this.frames[a].coded - this.frames[b].coded);
    this.kept = new Map(); // arrays by frame, those last used at the end
    this.keptBytes = 0;
    this.has = {
      quality: this.frames.some((frame) => frame.psnr),
      buffer: this.frames.some((frame) => frame.buffer),
      lists: this.frames.some((frame) => frame.lists),
      prediction: Boolean(this.prediction),
      source: Boolean(this.source),
    };
  }
  // The arrays of a frame, a promise.
  arrays(n) {
    let promise = this.kept.get(n);
    if (promise) this.kept.delete(n);
    else {
      promise = piece(`${this.key}f${n}`)
        .then(inflate)
        .then((buffer) => {
          const arrays = new Arrays(buffer);
          this.keptBytes += promise.size = arrays.size;
          for (const [k, old] of this.kept) {
            if (this.keptBytes <= ARRAYS_KEPT || old === promise) break;
            this.keptBytes -= old.size || 0;
            this.kept.delete(k);
          }
          return arrays;
        });
    }
    this.kept.set(n, promise);
    return promise;
  }
  // The frame that a reference index means, in display order; -1: unknown or not on the page.
  referred(n, slice, list, index) {
    return this.frames[n].lists?.[slice]?.[list]?.[index] ?? -1;
  }
}

const STREAMS = META.streams.map((meta, k) => new Stream(meta, k));
