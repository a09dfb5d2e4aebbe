// The account's network volumes: the rules.
import type { Refusal } from "../queue/views.ts";
import { type Removed, removed } from "./account-calls.ts";
import { changed } from "./fields.ts";
import type { Ledger } from "./ledger.ts";
import { volumeMicroUsdPerHour } from "./prices.ts";
import { absent, inUse, type Page, Rows } from "./rows.ts";
import type { Volume, VolumeChange } from "./volume.ts";

export class VolumeStore {
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
    const next = changed<Volume>(known, change);
    if (next.size < known.size) {
      return { refused: "INVALID_REQUEST", detail: `size: may only grow, and is ${known.size} already` };
    }
    this.#rows.put(next);
    if (next.size !== known.size) this.#clock(next, now);
    return next;
  }

  remove(id: string, now: number): Removed | Refusal {
    if (!this.#rows.find(id)) return absent("network volume");
    const attached = this.#sql.exec("SELECT 1 FROM endpoint_volumes WHERE volume = ? LIMIT 1", id).toArray().length > 0;
    if (attached || new Rows(this.#sql, "pods").has("networkVolumeId = ?", id)) {
      return inUse("network volume", "Pods or endpoints");
    }
    this.#rows.remove(id);
    this.#ledger.stop(id, now);
    return removed;
  }

  #clock({ id, size: gb, dataCenterId }: Volume, now: number): void {
    const clocked = {
      kind: "volume",
      resource: id,
      microUsdPerHour: volumeMicroUsdPerHour(gb),
      gb,
      dataCenterId,
      gpuTypeId: "",
      templateId: "",
      imageName: "",
    } as const;
    this.#ledger.start(clocked, now);
  }
}
