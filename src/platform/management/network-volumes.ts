// Network volumes: what is accepted, the rules, the routes.
import { type Context, Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { accepted } from "../answers.ts";
import type { Refusal } from "../queue/views.ts";
import * as fields from "./fields.ts";
import type { Ledger } from "./ledger.ts";
import { type Volume, volumeSchema } from "./pod.ts";
import { volumeMicroUsdPerHour } from "./prices.ts";
import { answerList, found, idIn, listed, type ManagementEnv, readBody, written } from "./resource.ts";
import { absent, inUse, newId, type Page, Rows } from "./rows.ts";

const size = z.int().min(0).max(4000).describe("Gigabytes.");
const createSchema = z
  .object({ name: fields.name, size, dataCenterId: z.string().regex(/^[A-Za-z0-9-]{1,64}$/, "expected a data center") })
  .meta({ id: "NetworkVolumeCreateInput" });
const updateSchema = z
  .object({ name: fields.name, size: size.describe("May only grow.") })
  .partial()
  .meta({ id: "NetworkVolumeUpdateInput" });
export type VolumeChange = z.output<typeof updateSchema>;

export class VolumeBook {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Volume>;
  readonly #ledger: Ledger;

  constructor(sql: SqlStorage, ledger: Ledger) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "volumes");
    this.#ledger = ledger;
  }

  find(id: string): Volume | Refusal {
    return this.#rows.find(id) ?? absent("network volume");
  }

  page(after: number): Page {
    return this.#rows.page("1", [], after);
  }

  create(volume: Volume, now: number): Volume {
    this.#rows.add(volume);
    this.#clock(volume, now);
    return volume;
  }

  update(id: string, change: VolumeChange, now: number): Volume | Refusal {
    const known = this.#rows.find(id);
    if (!known) return absent("network volume");
    const next = fields.changed<Volume>(known, change);
    if (next.size < known.size) {
      return { refused: "INVALID_REQUEST", detail: `size: may only grow, and is ${known.size} already` };
    }
    this.#rows.put(next);
    if (next.size !== known.size) this.#clock(next, now);
    return next;
  }

  remove(id: string, now: number): { removed: true } | Refusal {
    if (!this.#rows.find(id)) return absent("network volume");
    const attached = this.#sql.exec("SELECT 1 FROM endpoint_volumes WHERE volume = ? LIMIT 1", id).toArray().length > 0;
    if (attached || new Rows(this.#sql, "pods").has("networkVolumeId = ?", id)) {
      return inUse("network volume", "Pods or endpoints");
    }
    this.#rows.remove(id);
    this.#ledger.stop(id, now);
    return { removed: true };
  }

  #clock({ id, size: gb, dataCenterId }: Volume, now: number): void {
    const price = { microUsdPerHour: volumeMicroUsdPerHour(gb), gb, dataCenterId };
    const none = { gpuTypeId: "", templateId: "", imageName: "", borrowed: false };
    this.#ledger.start({ kind: "volume", resource: id, ...price, ...none }, now);
  }
}

export const networkVolumes = new Hono<ManagementEnv>()
  .get("/", (c) => {
    const books = c.get("books");
    return answerList([], (after) => books().listVolumes(after));
  })
  .post("/", async (c) => {
    const volume = { id: newId(10), ...(await readBody(c, createSchema)) };
    return c.json(await c.get("books")().createVolume(volume));
  })
  .get("/:networkVolumeId", async (c) => {
    return c.json(accepted(await c.get("books")().findVolume(idIn(c, "networkVolumeId"))));
  })
  .on(["PATCH"], "/:networkVolumeId", changeVolume)
  .on(["POST"], "/:networkVolumeId/update", changeVolume)
  .delete("/:networkVolumeId", async (c) => {
    accepted(await c.get("books")().deleteVolume(idIn(c, "networkVolumeId")));
    return c.body(null, 204);
  });

async function changeVolume(c: Context<ManagementEnv>): Promise<Response> {
  const id = idIn(c, "networkVolumeId");
  return c.json(
    accepted(
      await c
        .get("books")()
        .updateVolume(id, await readBody(c, updateSchema)),
    ),
  );
}

const one = { access: "platform", answer: volumeSchema } as const;
const byId = { path: "/networkvolumes/{networkVolumeId}" } as const;
const change = { ...one, body: updateSchema, errors: [...written, "NOT_FOUND"] } as const;

export const volumeOperations: readonly Operation[] = [
  {
    ...one,
    id: "ListNetworkVolumes",
    method: "get",
    path: "/networkvolumes",
    summary: "The network volumes",
    answer: z.array(volumeSchema),
    errors: listed,
  },
  {
    ...one,
    id: "CreateNetworkVolume",
    method: "post",
    path: "/networkvolumes",
    errors: written,
    summary: "Create a network volume",
    body: createSchema,
  },
  { ...one, ...byId, id: "GetNetworkVolume", method: "get", summary: "A network volume", errors: found },
  { ...change, ...byId, id: "UpdateNetworkVolume", method: "patch", summary: "Change a network volume" },
  {
    ...change,
    id: "UpdateNetworkVolumeByPost",
    method: "post",
    path: `${byId.path}/update`,
    summary: "The same as PATCH",
  },
  {
    ...byId,
    access: "platform",
    id: "DeleteNetworkVolume",
    method: "delete",
    status: 204,
    summary: "Delete a network volume that nothing is attached to",
    errors: [...found, "IN_USE"],
  },
];
