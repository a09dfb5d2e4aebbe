// A network volume: what one is made of and answered as.
import * as z from "zod";
import * as fields from "./fields.ts";

const size = z.int().min(0).max(4000).describe("Gigabytes.");
export const volumeCreateSchema = z
  .object({ name: fields.name, size, dataCenterId: z.string().regex(/^[A-Za-z0-9-]{1,64}$/, "expected a data center") })
  .meta({ id: "NetworkVolumeCreateInput" });
export const volumeUpdateSchema = z
  .object({ name: fields.name, size: size.describe("May only grow.") })
  .partial()
  .meta({ id: "NetworkVolumeUpdateInput" });
export type VolumeChange = z.output<typeof volumeUpdateSchema>;

export const volumeSchema = z
  .object({ id: z.string(), name: z.string(), size: z.int(), dataCenterId: z.string() })
  .meta({ id: "NetworkVolume" });
export type Volume = z.output<typeof volumeSchema>;
