// However much an account holds, a look-up and a filtered list read as many rows as they answer: an index leads each.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sumUp } from "../../../src/platform/management/billing-report.ts";
import { whereOf } from "../../../src/platform/management/pod-filter.ts";
import { podFilterSchema } from "../../../src/platform/management/pod-input.ts";
import { RegistryAuthStore } from "../../../src/platform/management/registry-auth-store.ts";
import { Rows } from "../../../src/platform/management/rows.ts";
import { TemplateStore } from "../../../src/platform/management/template-store.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { auth, pod, template } from "./management-client.ts";

const many = { templates: 100_000, pods: 10_000 };
const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)";

interface Read {
  readonly query: string;
  readonly bindings: unknown[];
  readonly cursor: SqlStorageCursor<Record<string, SqlStorageValue>>;
}

/** Storage that tells what was asked of it. */
function watched(sql: SqlStorage): { sql: SqlStorage; reads: Read[] } {
  const reads: Read[] = [];
  const exec = (query: string, ...bindings: unknown[]) => {
    const cursor = sql.exec(query, ...bindings);
    reads.push({ query, bindings, cursor });
    return cursor;
  };
  return { sql: { exec } as unknown as SqlStorage, reads };
}

/** Rows read by what the questions ask, and the plan of each. */
function cost(storage: SqlStorage, ask: (sql: SqlStorage) => unknown) {
  const { sql, reads } = watched(storage);
  ask(sql);
  const rows = reads.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0);
  const plans = reads.flatMap(({ query, bindings }) =>
    storage
      .exec<{ detail: string }>(`EXPLAIN QUERY PLAN ${query}`, ...bindings)
      .toArray()
      .map(({ detail }) => detail),
  );
  return { rows, plans };
}

const inAccount = <T>(act: (sql: SqlStorage) => T) =>
  runInDurableObject(env.ACCOUNT.getByName("north"), (_, { storage }) => act(storage.sql));

const questions: [string, (sql: SqlStorage) => unknown][] = [
  ["find a template", (sql) => new TemplateStore(sql).find("t50")],
  ["list templates but for the bound ones", (sql) => new TemplateStore(sql).page(false, 0)],
  ["whether a template is used", (sql) => new TemplateStore(sql).uses("t50")],
  ["whether a registry auth is used", (sql) => new RegistryAuthStore(sql).remove("a50")],
  ["find a Pod", (sql) => new Rows(sql, "pods").find("p50")],
  ...[
    ...["id=p50", "name=chosen", "templateId=t7", "networkVolumeId=v7", "imageName=chosen"],
    ...["gpuTypeId=Chosen", "dataCenterId=Chosen", "cpuFlavorId=chosen", "desiredStatus=EXITED"],
    ...["name=chosen&desiredStatus=RUNNING&computeType=GPU", "desiredStatus=RUNNING&gpuTypeId=Chosen"],
  ].map((query): [string, (sql: SqlStorage) => unknown] => [
    `list Pods by ${query}`,
    (sql) => {
      const asked = Object.fromEntries(new URLSearchParams(query));
      const { where, bindings } = whereOf(podFilterSchema.parse(asked));
      return new Rows(sql, "pods").page(where, bindings, 0);
    },
  ]),
];

beforeEach(async () => {
  // The rows that every question may find.
  await auth("north");
  for (let count = 0; count < 3; count++) {
    await template("north");
    await pod("north", { name: "chosen", imageName: "chosen" });
  }
});
afterEach(emptyStorage);

const plant = (sql: SqlStorage, templates: number, pods: number) => {
  sql.exec(
    `${numbers} INSERT INTO templates (json, bound)
     SELECT json_object('id', 't' || i, 'name', 'planted ' || i, 'containerRegistryAuthId', 'a' || i), 1 FROM n`,
    templates,
  );
  sql.exec(
    `${numbers} INSERT INTO pods (json) SELECT json_object('id', 'p' || i, 'name', 'planted ' || i, 'image', 'image ' || i,
     'templateId', 't' || i, 'networkVolumeId', 'v' || i, 'desiredStatus', 'RUNNING', 'computeType', 'GPU',
     'gpuTypeId', 'NVIDIA L4', 'dataCenterId', 'EU-RO-1') FROM n`,
    pods,
  );
};

describe("with 100,000 templates and 10,000 Pods", () => {
  it("every question reads what it reads with 100 of each, by an index", async () => {
    const few = await inAccount((sql) => {
      plant(sql, 100, 100);
      return questions.map(([, ask]) => cost(sql, ask).rows);
    });
    await inAccount((sql) => {
      for (const table of ["templates", "pods"]) sql.exec(`DELETE FROM ${table} WHERE name GLOB 'planted *'`);
      plant(sql, many.templates, many.pods);
      for (const [index, [name, ask]] of questions.entries()) {
        const { rows, plans } = cost(sql, ask);
        expect(rows, name).toBeLessThanOrEqual((few[index] ?? 0) * 1.5);
        expect(
          plans.filter((plan) => plan.startsWith("SCAN ")),
          name,
        ).toEqual([]);
        expect(
          plans.some((plan) => plan.startsWith("SEARCH ")),
          `${name}: ${plans}`,
        ).toBe(true);
      }
    });
  }, 20_000);
});

describe("a year's bill", () => {
  it("reads kept hours alone, by their key, and no resource", async () => {
    await inAccount((sql) => {
      const only = { resource: undefined };
      const asked = {
        kind: "pod",
        from: 0,
        to: 365 * 24 * 3_600_000,
        bucketSize: "month",
        grouping: "podId",
        only,
      } as const;
      const { plans } = cost(sql, (watching) => sumUp(watching, asked));
      expect(plans.some((plan) => /SEARCH u USING PRIMARY KEY \(kind=\? AND hour>\? AND hour<\?\)/.test(plan))).toBe(
        true,
      );
      expect(plans.some((plan) => /SEARCH m USING INTEGER PRIMARY KEY/.test(plan))).toBe(true);
      expect(plans.join()).not.toMatch(/pods|endpoints|jobs|templates/);
    });
  });
});
