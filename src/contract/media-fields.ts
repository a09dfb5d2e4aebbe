// The members of an output that lead to what a model made. Their URLs live for as long as the limits say.

export const mediaFields = ["image_url", "video_url", "audio_url"] as const;
export type MediaField = (typeof mediaFields)[number];

export function isMediaField(name: string): name is MediaField {
  return (mediaFields as readonly string[]).includes(name);
}
