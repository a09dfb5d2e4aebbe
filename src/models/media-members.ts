// Which members of a model's input are files, and of what kind.
import * as z from "zod";

export type MediaKind = "image" | "video" | "audio";

/** What a member's JSON Schema says it by. */
export const xMedia = "x-media";

export function mediaMembers(fields: z.ZodRawShape): ReadonlyMap<string, MediaKind> {
  const members = Object.entries(fields).flatMap(([name, field]): [string, MediaKind][] => {
    const kind = kindOf(field);
    return kind === undefined ? [] : [[name, kind]];
  });
  return new Map(members);
}

function kindOf(field: z.core.$ZodType): MediaKind | undefined {
  if (field instanceof z.ZodOptional) return kindOf(field.unwrap());
  return z.globalRegistry.get(field)?.[xMedia] as MediaKind | undefined;
}
