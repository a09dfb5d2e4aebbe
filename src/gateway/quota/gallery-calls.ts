// What the gallery asks of a payer's meter.

/** A link in its owner's gallery. */
export interface GalleryRow {
  readonly key: string;
  readonly field: string;
  readonly model: string;
  readonly cost: number | null;
  readonly size: number | null;
  readonly completedAt: number;
  readonly expiresAt: number;
}

export interface GalleryCursor {
  readonly completedAt: number;
  readonly key: string;
}

/** The calls that the gallery makes. */
export interface GalleryCalls {
  /** Newest first. */
  gallery(owner: string, before: GalleryCursor | undefined, count: number): GalleryRow[];
  removeFromGallery(owner: string, key: string): void;
}
