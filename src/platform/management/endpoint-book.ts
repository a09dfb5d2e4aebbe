// The account's endpoints: how one is made and changed, and what its queue is told.
import type { EndpointSettings } from "../queue/endpoint-settings.ts";
import type { Refusal } from "../queue/views.ts";
import type { Endpoint, EndpointChange, EndpointInput } from "./endpoints.ts";
import { changed } from "./fields.ts";
import type { Circumstances, Ledger } from "./ledger.ts";
import { type Compute, cpuPrices, gpuTypeIds, workerMicroUsdPerHour } from "./prices.ts";
import { absent, type Page, Rows } from "./rows.ts";
import type { Template } from "./template.ts";
import { type TemplateBook, type Usable, unknownReference } from "./template-book.ts";

export class EndpointBook {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Endpoint>;
  readonly #ledger: Ledger;
  readonly #templates: TemplateBook;

  constructor(sql: SqlStorage, ledger: Ledger, templates: TemplateBook) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "endpoints");
    this.#ledger = ledger;
    this.#templates = templates;
  }

  find(id: string): Endpoint | undefined {
    return this.#rows.find(id);
  }

  page(after: number): Page {
    return this.#rows.page("1", [], after);
  }

  create(id: string, userId: string, input: EndpointInput, now: number, borrowed?: Template): Endpoint | Refusal {
    const used = this.#templates.usable(input.templateId, borrowed);
    if (!used) return unknownReference("templateId", "template");
    const { template } = used;
    const { networkVolumeId, networkVolumeIds, name = template.name, ...others } = input;
    const compute =
      input.computeType === "GPU"
        ? { gpuTypeIds: input.gpuTypeIds ?? [gpuTypeIds[0]], instanceIds: [] }
        : { cpuFlavorIds: input.cpuFlavorIds ?? (["cpu3g"] as const) };
    const endpoint = whole({
      ...others,
      id,
      name,
      userId,
      createdAt: new Date(now).toISOString(),
      version: 0,
      env: template.env,
      ...compute,
      ...volumes(networkVolumeId, networkVolumeIds, []),
    } as Endpoint);
    const refusal = this.#refuse(endpoint);
    if (refusal) return refusal;
    this.#rows.add(endpoint, { meter: this.#meter(endpoint, used) });
    this.#attach(endpoint);
    this.#templates.bind(template.id);
    return endpoint;
  }

  update(id: string, change: EndpointChange, borrowed?: Template): Endpoint | Refusal {
    const known = this.#rows.find(id);
    if (!known) return absent("endpoint");
    const used = this.#templates.usable(change.templateId ?? known.templateId, borrowed);
    if (!used) return unknownReference("templateId", "template");
    const { networkVolumeId, networkVolumeIds, ...others } = change;
    const { networkVolumeId: _, ...rest } = known;
    const next = whole({
      ...changed<Endpoint>(rest, others),
      ...volumes(networkVolumeId, networkVolumeIds, known.networkVolumeIds),
      env: used.template.env,
      version: known.version + 1,
    });
    const refusal = this.#refuse(next);
    if (refusal) return refusal;
    this.#put(next, used);
    this.#attach(next);
    for (const template of new Set([known.templateId, next.templateId])) this.#templates.bind(template);
    return next;
  }

  /** Workers of an endpoint begin anew with what their template is now. */
  follow(template: Template): string[] {
    const query = "SELECT json FROM endpoints WHERE templateId = ?";
    const rows = this.#sql.exec<{ json: string }>(query, template.id).toArray();
    return rows.map(({ json }) => {
      const known = JSON.parse(json) as Endpoint;
      this.#put({ ...known, env: template.env, version: known.version + 1 }, { template, borrowed: false });
      return known.id;
    });
  }

  remove(id: string): boolean {
    const known = this.#rows.find(id);
    if (!known) return false;
    this.#rows.remove(id);
    this.#sql.exec("DELETE FROM endpoint_volumes WHERE endpoint = ?", id);
    this.#templates.bind(known.templateId);
    return true;
  }

  settings(id: string): EndpointSettings | undefined {
    const endpoint = this.#rows.find(id);
    if (!endpoint) return undefined;
    const { workersMin, workersMax, idleTimeout, executionTimeoutMs, scalerType: type, scalerValue: value } = endpoint;
    const { meter } = this.#sql.exec<{ meter: number }>("SELECT meter FROM endpoints WHERE id = ?", id).one();
    return {
      workersMin,
      workersMax,
      executionTimeoutMs,
      idleTimeoutSeconds: idleTimeout,
      closed: false,
      requestsPerWorker: type === "REQUEST_COUNT" ? value : 1,
      managed: { scaler: { type, value }, meter },
    };
  }

  #refuse({ workersMin, workersMax, networkVolumeIds }: Endpoint): Refusal | undefined {
    if (workersMin > workersMax) {
      return { refused: "INVALID_REQUEST", detail: "workersMin: is more than workersMax" };
    }
    const known = new Rows(this.#sql, "volumes");
    const missing = networkVolumeIds.findIndex((id) => !known.has("id = ?", id));
    return missing < 0 ? undefined : unknownReference(`networkVolumeIds.${missing}`, "network volume");
  }

  #put(endpoint: Endpoint, used: Usable): void {
    this.#rows.put(endpoint);
    this.#sql.exec("UPDATE endpoints SET meter = ? WHERE id = ?", this.#meter(endpoint, used), endpoint.id);
  }

  #attach({ id, networkVolumeIds }: Endpoint): void {
    this.#sql.exec("DELETE FROM endpoint_volumes WHERE endpoint = ?", id);
    for (const volume of networkVolumeIds) {
      this.#sql.exec("INSERT INTO endpoint_volumes (volume, endpoint) VALUES (?, ?)", volume, id);
    }
  }

  #meter(endpoint: Endpoint, { template, borrowed }: Usable): number {
    const compute = computeOf(endpoint);
    const circumstances: Circumstances = {
      kind: "endpoint",
      resource: endpoint.id,
      gb: 0,
      templateId: template.id,
      imageName: template.imageName,
      microUsdPerHour: workerMicroUsdPerHour(compute),
      dataCenterId: endpoint.dataCenterIds[0] ?? "",
      borrowed,
      gpuTypeId: compute.computeType === "GPU" ? compute.gpuTypeId : "",
    };
    return this.#ledger.meter(circumstances);
  }
}

/** What its workers run on: the first in the order of priority, since nothing is ever short here. */
export function computeOf({ computeType, gpuTypeIds: gpus, gpuCount, ...cpu }: Endpoint): Compute {
  if (computeType === "GPU") return { computeType, gpuTypeId: gpus?.[0] ?? gpuTypeIds[0], gpuCount };
  return { computeType, cpuFlavorId: cpu.cpuFlavorIds?.[0] ?? "cpu3g", vcpuCount: cpu.vcpuCount ?? 2 };
}

/** With what follows from its other fields. */
function whole(endpoint: Endpoint): Endpoint {
  if (endpoint.computeType === "GPU") return endpoint;
  const vcpus = endpoint.vcpuCount ?? 2;
  const instanceIds = (endpoint.cpuFlavorIds ?? []).map(
    (flavor) => `${flavor}-${vcpus}-${vcpus * cpuPrices[flavor].memoryInGb}`,
  );
  return { ...endpoint, instanceIds };
}

/** One volume or several: the one is the first of the several. */
function volumes(one: string | null | undefined, several: readonly string[] | undefined, kept: readonly string[]) {
  const base = several ?? (one === undefined ? kept : []);
  const networkVolumeIds = [...new Set([...(one ? [one] : []), ...base])];
  const [networkVolumeId] = networkVolumeIds;
  return { networkVolumeIds, ...(networkVolumeId !== undefined && { networkVolumeId }) };
}
