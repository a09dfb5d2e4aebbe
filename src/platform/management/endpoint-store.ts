// The account's endpoints: how they are made and changed, and the settings of their queues.
import type { EndpointSettings } from "../queue/endpoint-settings.ts";
import type { Refusal } from "../queue/views.ts";
import type { Endpoint, EndpointChange, EndpointInput } from "./endpoint.ts";
import { changed } from "./fields.ts";
import type { Circumstances, Ledger } from "./ledger.ts";
import { type Compute, cpuPrices, gpuTypeIds, workerMicroUsdPerHour } from "./prices.ts";
import { absent, type RowPage, Rows } from "./rows.ts";
import type { Template } from "./template-input.ts";
import { type TemplateStore, unknownReference, wrongKind } from "./template-store.ts";

export class EndpointStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<Endpoint>;
  readonly #ledger: Ledger;
  readonly #templates: TemplateStore;

  constructor(sql: SqlStorage, ledger: Ledger, templates: TemplateStore) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "endpoints");
    this.#ledger = ledger;
    this.#templates = templates;
  }

  find(id: string): Endpoint | undefined {
    return this.#rows.find(id);
  }

  page(after: number): RowPage {
    return this.#rows.page("1", [], after);
  }

  template(id: string): Template | undefined {
    return this.#templates.usedBy("endpoints", id);
  }

  /** `shared` is the public template of another account that the input names. */
  create(id: string, userId: string, input: EndpointInput, now: number, shared?: Template): Endpoint | Refusal {
    const template = this.#templates.known(input.templateId) ?? shared;
    if (!template) return unknownReference("templateId", "template");
    const kind = wrongKind(template, true);
    if (kind) return kind;
    const { networkVolumeId, networkVolumeIds, name = template.name, ...others } = input;
    const balanced = input.type === "LB";
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
      scalerType: input.scalerType ?? (balanced ? "REQUEST_COUNT" : "QUEUE_DELAY"),
      ...(balanced && { workerUrls: input.workerUrls ?? [] }),
      ...compute,
      ...volumes(networkVolumeId, networkVolumeIds, []),
    } as Endpoint);
    const refusal = this.#refuse(endpoint);
    if (refusal) return refusal;
    this.#rows.add(endpoint, {
      meter: this.#meter(endpoint, template),
      templateCopy: this.#templates.copyOf(template),
    });
    this.#attach(endpoint);
    this.#templates.bind(template.id);
    return endpoint;
  }

  /** `shared` is the public template of another account that the change names. */
  update(id: string, change: EndpointChange, shared?: Template): Endpoint | Refusal {
    const known = this.#rows.find(id);
    if (!known) return absent("endpoint");
    const template = this.#templateFor(known, change, shared);
    if (!template) return unknownReference("templateId", "template");
    const kind = change.templateId === undefined ? undefined : wrongKind(template, true);
    if (kind) return kind;
    const { networkVolumeId, networkVolumeIds, ...others } = change;
    const { networkVolumeId: _, ...rest } = known;
    const next = whole({
      ...changed<Endpoint>(rest, others),
      ...volumes(networkVolumeId, networkVolumeIds, known.networkVolumeIds),
      env: template.env,
      version: known.version + 1,
    });
    const refusal = next.type === known.type ? this.#refuse(next) : typeStays;
    if (refusal) return refusal;
    this.#put(next, template);
    this.#attach(next);
    for (const used of new Set([known.templateId, next.templateId])) this.#templates.bind(used);
    return next;
  }

  /** Applies the changed template to every endpoint that uses it. Answers their ids. */
  follow(template: Template): string[] {
    const query = "SELECT json FROM endpoints WHERE templateId = ?";
    const rows = this.#sql.exec<{ json: string }>(query, template.id).toArray();
    return rows.map(({ json }) => {
      const known = JSON.parse(json) as Endpoint;
      this.#put({ ...known, env: template.env, version: known.version + 1 }, template);
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

  #refuse({ workersMin, workersMax, networkVolumeIds, ...balanced }: Endpoint): Refusal | undefined {
    if (balanced.type === "QB" && balanced.workerUrls) {
      return { refused: "INVALID_REQUEST", detail: "workerUrls: only an endpoint of the type LB has them" };
    }
    if (balanced.type === "LB" && balanced.scalerType !== "REQUEST_COUNT") {
      return { refused: "INVALID_REQUEST", detail: "scalerType: an endpoint of the type LB takes REQUEST_COUNT only" };
    }
    if (workersMin > workersMax) {
      return { refused: "INVALID_REQUEST", detail: "workersMin: is more than workersMax" };
    }
    const known = new Rows(this.#sql, "volumes");
    const missing = networkVolumeIds.findIndex((id) => !known.has("id = ?", id));
    return missing < 0 ? undefined : unknownReference(`networkVolumeIds.${missing}`, "network volume");
  }

  #templateFor(known: Endpoint, { templateId }: EndpointChange, shared: Template | undefined): Template | undefined {
    if (templateId !== undefined) return this.#templates.known(templateId) ?? shared;
    return this.#templates.usedBy("endpoints", known.id) ?? shared;
  }

  #put(endpoint: Endpoint, template: Template): void {
    this.#rows.put(endpoint);
    const keep = "UPDATE endpoints SET meter = ?, templateCopy = ? WHERE id = ?";
    this.#sql.exec(keep, this.#meter(endpoint, template), this.#templates.copyOf(template), endpoint.id);
  }

  #attach({ id, networkVolumeIds }: Endpoint): void {
    this.#sql.exec("DELETE FROM endpoint_volumes WHERE endpoint = ?", id);
    for (const volume of networkVolumeIds) {
      this.#sql.exec("INSERT INTO endpoint_volumes (volume, endpoint) VALUES (?, ?)", volume, id);
    }
  }

  #meter(endpoint: Endpoint, template: Template): number {
    const compute = computeOf(endpoint);
    const circumstances: Circumstances = {
      kind: "endpoint",
      resource: endpoint.id,
      gb: 0,
      templateId: template.id,
      imageName: template.imageName,
      microUsdPerHour: workerMicroUsdPerHour(compute),
      dataCenterId: endpoint.dataCenterIds[0] ?? "",
      gpuTypeId: compute.computeType === "GPU" ? compute.gpuTypeId : "",
    };
    return this.#ledger.meter(circumstances);
  }
}

const typeStays: Refusal = { refused: "INVALID_REQUEST", detail: "type: cannot be changed" };

/** The hardware of its workers: the first choice, since nothing is ever short here. */
export function computeOf({ computeType, gpuTypeIds: gpus, gpuCount, ...cpu }: Endpoint): Compute {
  if (computeType === "GPU") return { computeType, gpuTypeId: gpus?.[0] ?? gpuTypeIds[0], gpuCount };
  return { computeType, cpuFlavorId: cpu.cpuFlavorIds?.[0] ?? "cpu3g", vcpuCount: cpu.vcpuCount ?? 2 };
}

/** Adds the fields that follow from others. */
function whole(endpoint: Endpoint): Endpoint {
  if (endpoint.computeType === "GPU") return endpoint;
  const vcpus = endpoint.vcpuCount ?? 2;
  const instanceIds = (endpoint.cpuFlavorIds ?? []).map(
    (flavor) => `${flavor}-${vcpus}-${vcpus * cpuPrices[flavor].memoryInGb}`,
  );
  return { ...endpoint, instanceIds };
}

/** Joins the two ways to name volumes: `networkVolumeId` is the first of `networkVolumeIds`. */
function volumes(one: string | null | undefined, several: readonly string[] | undefined, kept: readonly string[]) {
  const base = several ?? (one === undefined ? kept : []);
  const networkVolumeIds = [...new Set([...(one ? [one] : []), ...base])];
  const [networkVolumeId] = networkVolumeIds;
  return { networkVolumeIds, ...(networkVolumeId !== undefined && { networkVolumeId }) };
}
