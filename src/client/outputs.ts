// What models take as media, and what they answer.

/** An https URL, a data URL, base64, or a File or Blob, which the client uploads. */
export type Media = string | Blob;

export interface ImageOutput {
  readonly image_url: string;
  /** When the link ends, ISO 8601. */
  readonly expires_at?: string;
  /** USD. */
  readonly cost?: number;
}

export interface VideoOutput {
  readonly video_url: string;
  /** When the link ends, ISO 8601. */
  readonly expires_at?: string;
  readonly cost?: number;
}

export interface SpeechOutput {
  readonly audio_url: string;
  /** When the link ends, ISO 8601. */
  readonly expires_at?: string;
  readonly cost?: number;
}

/** A piece of a text as it is streamed. */
export interface TextChunk {
  readonly text: readonly string[];
}

export type TextOutput = readonly {
  readonly choices: readonly { readonly tokens: readonly string[] }[];
  readonly cost?: number;
  readonly usage?: { readonly input: number; readonly output: number };
}[];
