// The smallest files that are known as what they are.

/** A tenth of a second of nothing, as WAV. */
function wav(): Buffer {
  const [rate, samples] = [8000, 800];
  const wav = Buffer.alloc(44 + samples, 128);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + samples, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate, 28);
  wav.writeUInt16LE(1, 32);
  wav.writeUInt16LE(8, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(samples, 40);
  return wav;
}

/** The start of an MP4. */
function mp4(): Buffer {
  const mp4 = Buffer.alloc(64);
  mp4.writeUInt32BE(24, 0);
  mp4.write("ftypisom", 4);
  mp4.write("isommp42", 16);
  return mp4;
}

export const silence = { name: "sound.wav", mimeType: "audio/wav", buffer: wav() };
export const film = { name: "film.mp4", mimeType: "video/mp4", buffer: mp4() };
