// What the gateway answers to questions. Money is in USD, dates are ISO 8601.
import type { AnyModel } from "./catalog.ts";

export interface Estimate {
  readonly model: AnyModel;
  /** What would be reserved: the price, or the most that this input can cost. */
  readonly usd: number;
}

export interface Pricing {
  /** What is paid for. */
  readonly per: "image" | "video" | "megapixel" | "second" | "5 seconds" | "1000 characters" | "million tokens" | "job";
  readonly usd?: number;
  /** One price for each value of a field of the input. */
  readonly usdBy?: { readonly field: string; readonly values: Readonly<Record<string, number>> };
  /** For tokens that are read, and that are written. */
  readonly inputUsd?: number;
  readonly outputUsd?: number;
  /** The numbers are the top of a range; the job's end tells its price. */
  readonly upTo?: true;
  /** The most that a job can cost. */
  readonly maxUsd: number;
}

export interface ListedModel {
  readonly id: AnyModel;
  readonly title: string;
  readonly kind: "image" | "image-edit" | "video" | "speech" | "text";
  /** The price as documented, for people. */
  readonly price: string;
  readonly pricing: Pricing;
  readonly output: "image_url" | "video_url" | "audio_url" | "text";
  readonly reuse: "seeded" | "always" | "never";
  readonly openAiRoutes: readonly string[];
  /** JSON Schema of the model's input. */
  readonly input: Readonly<Record<string, unknown>>;
}

export interface GalleryItem {
  readonly key: string;
  readonly url: string;
  readonly field: "image_url" | "video_url" | "audio_url";
  readonly model: AnyModel;
  readonly cost: number | null;
  /** Bytes, where they are known. */
  readonly size: number | null;
  readonly completedAt: string;
  readonly expiresAt: string;
}

export interface Gallery {
  /** Newest first. */
  readonly images: readonly GalleryItem[];
  /** For the next page; null at the end. */
  readonly cursor: string | null;
}

export interface Limit {
  readonly name: string;
  readonly unit: "requests" | "jobs" | "usd" | "bytes" | "stored";
  readonly limit: number;
  /** Reservations included. */
  readonly used: number;
  readonly reserved: number;
  readonly remaining: number;
  readonly resetsAt: string | null;
}

export interface UsedJob {
  readonly model: AnyModel;
  readonly status: string;
  readonly reservedUsd: number;
  /** Null while the job is open. */
  readonly costUsd: number | null;
  readonly admittedAt: string;
  readonly endedAt: string | null;
}

/** Of one day (of admission, UTC), one model, or one model on one day, as it was asked for. */
export interface Spent {
  readonly day?: string;
  readonly model?: AnyModel;
  /** Settled jobs. */
  readonly jobs: number;
  readonly usd: number;
  /** How much of it no answer told. */
  readonly assumedUsd: number;
}

export interface Usage {
  readonly plan: string;
  readonly limits: readonly Limit[];
  /** Newest first. */
  readonly jobs: readonly UsedJob[];
  /** Where it was asked for `by`: newest day first, then the dearest model. */
  readonly spent?: readonly Spent[];
}
