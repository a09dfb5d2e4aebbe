// A picture, a film or a sound; and which links are ever followed.

export type MediaKind = "image" | "video" | "audio";

type Shown = Readonly<{ kind: MediaKind; url: string; says: string; isSmall?: boolean }>;

export function Media({ kind, url, says, isSmall = false }: Shown) {
  if (kind === "image") return <img src={url} alt={isSmall ? "" : says} decoding="async" />;
  if (kind === "audio" && isSmall) return <span class="sound">♪</span>;
  if (kind === "audio") return <audio src={url} controls aria-label={says} />;
  if (isSmall) return <video src={url} muted playsinline preload="metadata" aria-label={says} />;
  return <video src={url} controls loop playsinline aria-label={says} />;
}

export const Download = ({ url }: { readonly url: string | undefined }) => (
  <a class="quiet" href={url} download>
    Download
  </a>
);

/** `image_url` and the like, as answers name what they carry. */
export const kindOf = (field: string) => field.replace("_url", "") as MediaKind;

/** A model's link that would run as a script, or be a page of ours, is none. */
export const linkOf = (url: unknown) => (/^(https?:|data:(image|video|audio)\/)/.test(`${url}`) ? `${url}` : undefined);
