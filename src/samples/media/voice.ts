// Speech without words: syllables of vowels at a speaker's pitch, in the rhythm of the text that was sent.
import { type Chance, chanceFrom, hashText } from "../chance.ts";

export interface SpeechRequest {
  readonly text: string;
  readonly voice?: string;
  readonly speed?: number;
}

export const sampleRate = 16_000;
const speechBounds = { leastSeconds: 0.5, mostSeconds: 120, leastSpeed: 0.25, mostSpeed: 4 } as const;

const charactersASecond = 14;

/** How long the speech of a text takes. Its price follows from it. */
export function speechSeconds(text: string, speed = 1): number {
  const asked = Number.isFinite(speed) ? speed : 1;
  const pace = Math.min(speechBounds.mostSpeed, Math.max(speechBounds.leastSpeed, asked));
  const seconds = [...text.trim()].length / charactersASecond / pace;
  return Math.min(speechBounds.mostSeconds, Math.max(speechBounds.leastSeconds, seconds));
}

/** The first three resonances of a mouth, in hertz. */
const vowels: Readonly<Record<string, readonly [number, number, number]>> = {
  a: [760, 1250, 2550],
  e: [480, 1900, 2550],
  i: [300, 2250, 2950],
  o: [480, 880, 2450],
  u: [330, 800, 2300],
  y: [290, 1800, 2400],
};

/** One channel. */
export function speak({ text, voice = "", speed = 1 }: SpeechRequest): Int16Array {
  const seconds = speechSeconds(text, speed);
  const samples = new Float32Array(Math.round(seconds * sampleRate));
  const chance = chanceFrom(hashText(text, hashText(voice)));
  const speaker = chanceFrom(hashText(voice.toLowerCase()));
  const pitch = 95 * 2.3 ** speaker();
  const mouth = 0.92 + 0.24 * ((pitch - 95) / 125) + 0.05 * speaker();
  const syllables = syllablesOf(text);
  const total = syllables.reduce((sum, syllable) => sum + syllable.length, 0);
  let at = 0;
  let spent = 0;
  for (const [i, syllable] of syllables.entries()) {
    spent += syllable.length;
    const until = Math.round((spent / total) * samples.length);
    const sentence = 1.12 - 0.22 * (i / syllables.length);
    const melody = sentence * (1 + 0.12 * (chance() - 0.5)) * (syllable.rises ? 1.18 : 1);
    if (syllable.vowel) voiced(samples.subarray(at, until), pitch * melody, mouth, syllable, chance);
    at = until;
  }
  return loud(samples);
}

interface Syllable {
  readonly vowel?: readonly [number, number, number];
  readonly hiss: boolean;
  readonly rises: boolean;
  readonly length: number;
}

/** One vowel each, with the consonants before it. Punctuation and the ends of words are pauses. */
export function syllablesOf(text: string): Syllable[] {
  const found: Syllable[] = [];
  const plain = text.slice(0, 8000).normalize("NFD").toLowerCase();
  for (const match of plain.matchAll(
    /[^aeiouy\s.,;:!?]*[aeiouy]+[^aeiouy\s.,;:!?]*|[^aeiouy\s.,;:!?]{1,3}|[.,;:!?]+|\s+/gu,
  )) {
    const [part] = match;
    const vowel = vowels[part.match(/[aeiouy]/)?.[0] ?? "e"];
    const pause = /^[\s.,;:!?]/.test(part);
    const length = pause
      ? /[.!?]/.test(part)
        ? 5
        : /[,;:]/.test(part)
          ? 3
          : 0.7
      : 1.6 + Math.min(4, part.length) * 0.6;
    const rises = /^[^\s]*\s*\?/.test(plain.slice(match.index + part.length));
    found.push(
      pause || !vowel ? { hiss: false, rises, length } : { vowel, hiss: /^[sfzxcthk]/.test(part), rises, length },
    );
  }
  return found.some((syllable) => syllable.vowel)
    ? found
    : [{ vowel: [480, 1900, 2550], hiss: false, rises: false, length: 1 }];
}

/** A pulse train through three resonators, opened and closed softly; a hiss stands for the consonant. */
function voiced(out: Float32Array, pitch: number, mouth: number, syllable: Syllable, chance: Chance): void {
  const resonators = (syllable.vowel ?? [500, 1500, 2500]).map((hertz, i) => {
    const [angle, decay] = [
      (2 * Math.PI * hertz * mouth) / sampleRate,
      Math.exp((-Math.PI * (70 + 40 * i)) / sampleRate),
    ];
    return {
      turn: 2 * decay * Math.cos(angle),
      fade: -decay * decay,
      gain: (1 - decay) * (1.3 - 0.35 * i),
      one: 0,
      two: 0,
    };
  });
  const lead = syllable.hiss ? Math.min(out.length * 0.3, sampleRate * 0.06) : 0;
  const [rise, fall] = [sampleRate * 0.018, sampleRate * 0.05];
  let phase = 0;
  let breath = 0;
  for (let n = 0; n < out.length; n++) {
    const along = n / out.length;
    const noise = chance() * 2 - 1;
    if (n < lead) {
      out[n] = (noise - breath) * 0.05 * Math.sin((Math.PI * n) / lead);
      breath = noise;
      continue;
    }
    phase += (pitch * (1.04 - 0.1 * along + 0.008 * Math.sin(n * 0.0022))) / sampleRate;
    if (phase >= 1) phase -= 1;
    const source = (phase < 0.6 ? phase * phase * (0.6 - phase) * 27 - 0.3 : -0.3) + noise * 0.03;
    let sound = 0;
    for (const resonator of resonators) {
      const next = source * resonator.gain + resonator.turn * resonator.one + resonator.fade * resonator.two;
      resonator.two = resonator.one;
      resonator.one = next;
      sound += next;
    }
    const open = Math.min(1, (n - lead) / rise, (out.length - n) / fall);
    out[n] = sound * open * open * (3 - 2 * open);
  }
}

/** At an even loudness. */
function loud(samples: Float32Array): Int16Array {
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-6);
  return Int16Array.from(samples, (sample) => (sample * 26_000) / peak);
}
