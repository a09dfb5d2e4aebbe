// A container registry auth: what one is made of and answered as. A password is checked and never kept.
import * as z from "zod";
import * as fields from "./fields.ts";

const secret = z.string().min(1).max(65_536);
export const registryAuthCreateSchema = z
  .object({ name: fields.name, username: z.string().min(1).max(1024), password: secret })
  .meta({ id: "ContainerRegistryAuthCreateInput" });
export const registryAuthSchema = z.object({ id: z.string(), name: z.string() }).meta({ id: "ContainerRegistryAuth" });
export type RegistryAuth = z.output<typeof registryAuthSchema>;
