// A picture, a film or a sound; and which links are ever followed.

export type MediaKind = "image" | "video" | "audio";

interface Shown {
  readonly kind: MediaKind;
  readonly url: string;
  readonly says: string;
  readonly isSmall?: boolean;
}

export function Media({ kind, url, says, isSmall = false }: Shown) {
  if (kind === "image" && isSmall) return <img src={url} alt="" loading="lazy" decoding="async" />;
  if (kind === "image") return <img src={url} alt={says} decoding="async" />;
  if (kind === "audio" && isSmall) return <span class="sound" aria-hidden="true" />;
  if (kind === "audio") return <audio src={url} controls aria-label={says} />;
  if (isSmall) return <video src={url} muted playsinline preload="metadata" aria-label={says} />;
  return <video src={url} controls loop playsinline aria-label={says} />;
}

/** `image_url` and the like, as answers name what they carry. */
export const kindOf = (field: string) => field.replace("_url", "") as MediaKind;

/** A model's link that would run as a script, or be a page of ours, is none. */
export const linkOf = (url: unknown) => (/^(https?:|data:(image|video|audio)\/)/.test(`${url}`) ? `${url}` : undefined);
