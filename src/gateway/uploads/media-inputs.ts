// The URLs in an input's media members: our own links are found, foreign ones held to be public.
import { Problem } from "../../errors.ts";
import type { Model, ModelInput } from "../../models/model.ts";
import type { OwnLink, OwnLinks } from "./own-links.ts";

/** Where one of our links stands in an input. */
export interface LinkedMedia {
  readonly member: string;
  /** In a list. */
  readonly at: number | undefined;
  readonly link: OwnLink;
  /** It does not stand there as the model service must read it. */
  readonly mustChange: boolean;
}

const isUrl = /^https?:/i;

/** Members that were too large to be read are no strings here, and held to nothing. */
export function findLinkedMedia(input: ModelInput, { media }: Pick<Model, "media">, links: OwnLinks): LinkedMedia[] {
  return [...media.keys()].flatMap((member) => {
    const value = input[member];
    const texts = Array.isArray(value) ? value : [value];
    return texts.flatMap((text: unknown, index) => {
      if (typeof text !== "string" || !isUrl.test(text)) return [];
      const at = Array.isArray(value) ? index : undefined;
      const link = links.read(text);
      if (link === undefined) return [];
      if ("refused" in link) throw refusedAt({ member, at }, `the URL ${link.refused}`);
      return [{ member, at, link, mustChange: !links.areReachable || link.url !== text }];
    });
  });
}

export function placeOf({ member, at }: Pick<LinkedMedia, "member" | "at">): string {
  return at === undefined ? `input.${member}` : `input.${member}.${at}`;
}

export function refusedAt(place: Pick<LinkedMedia, "member" | "at">, reason: string): Problem {
  return new Problem("INVALID_REQUEST", `${placeOf(place)}: ${reason}`);
}
