// Many uploads of one user: what is read of its meter to reserve and to list does not grow with them.
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { Admissions } from "../../../src/gateway/quota/admissions.ts";
import { MeterStores } from "../../../src/gateway/quota/meter-stores.ts";
import { Network, type NetworkCalls } from "../../../src/gateway/quota/network.ts";
import { Released } from "../../../src/gateway/quota/released.ts";
import { UploadAdmissions } from "../../../src/gateway/quota/upload-admissions.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { inMeter } from "./uploader.ts";

afterEach(() => emptyStorage());

const now = Date.UTC(2026, 10, 22, 12);
const rules = [
  { unit: "bytes", limit: 1e12, per: "day" },
  { unit: "stored", limit: 1e12 },
] as const;
const claims = {
  plan: "counted",
  planFrom: "token",
  plans: JSON.stringify({ counted: rules }),
  token: undefined,
} as const;

function request(n: number) {
  const key = `${String(n).padStart(32, "f")}-0mwtijrar-0123456789abcdef.jpg`;
  const times = { putUntil: now + 600_000, expiresAt: now + 86_400_000 };
  const bearer = { issuedAt: now, tokenId: undefined };
  return { ...claims, ...times, hasCeiling: false, key, owner: "user:ada", bearer, type: "image/jpeg", bytes: 1000 };
}

/** The rows that each call reads and writes, of a meter that knows the uploads' newer index, or is about to make it. */
async function readOf(many: number, isOlder = false): Promise<Record<"reserve" | "keep" | "list" | "usage", number>> {
  return inMeter(`user:with-${many}`, async (_, state) => {
    const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
    const sql = new Proxy(state.storage.sql, {
      get: (target, name) => {
        if (name !== "exec") return Reflect.get(target, name, target);
        return (query: string, ...values: unknown[]) => {
          const cursor = target.exec(query, ...values);
          cursors.push(cursor);
          return cursor;
        };
      },
    });
    const storage = new Proxy(state.storage, {
      get: (target, name) => {
        if (name === "sql") return sql;
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const network = new Network(env.USER_METER as unknown as DurableObjectNamespace<NetworkCalls>);
    const wake = () => {
      const stores = new MeterStores(storage, () => now);
      const admissions = new Admissions(stores);
      const uploading = { stores, admissions, network, released: new Released(), clock: () => now };
      return { admissions, uploads: new UploadAdmissions(uploading) };
    };
    const first = wake().uploads;
    await first.reserve(request(0));
    first.keep(request(0).key);
    if (isOlder) {
      state.storage.sql.exec("DROP INDEX uploads_open");
      state.storage.sql.exec(`UPDATE state SET json = replace(json, ',"uploads_open"', '')`);
    }
    const { admissions, uploads } = wake();
    await uploads.reserve(request(2));
    uploads.keep(request(2).key);
    const copies = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${many - 1})
      INSERT INTO uploads SELECT printf('%032d', n) || substr(key, 33), owner, account, network, type, bytes, state, day,
        createdAt + n, expiresAt + n, 1, dueAt + n, 0 FROM (SELECT * FROM uploads LIMIT 1), numbers`;
    state.storage.sql.exec(copies);
    const count = async (act: () => unknown) => {
      cursors.length = 0;
      await act();
      return cursors.reduce((sum, { rowsRead, rowsWritten }) => sum + rowsRead + rowsWritten, 0);
    };
    return {
      reserve: await count(() => uploads.reserve(request(1))),
      keep: await count(() => uploads.keep(request(1).key)),
      list: await count(() => expect(uploads.list("user:ada", undefined, 51)).toHaveLength(51)),
      usage: await count(() => admissions.usages(claims, now)),
    };
  });
}

describe("a hundred thousand uploads of a user", () => {
  it("cost what a hundred do, where an older release has made the table, too", async () => {
    expect(await readOf(100_000, true)).toEqual(await readOf(100));
  });

  it("cost what a hundred do, to reserve, to settle, to list and to look", async () => {
    const [few, many] = [await readOf(100), await readOf(100_000)];
    expect(many).toEqual(few);
    expect(Math.max(...Object.values(many))).toBeLessThan(150);
  });
});

it("a network's addresses may have ten times as many open as one of them", async () => {
  const name = "addr:2001:db8:1::/48";
  const asked = (n: number) => ({ ...request(n), isShare: true });
  const open = (
    count: number,
  ) => `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
    INSERT OR IGNORE INTO uploads SELECT printf('%032d', n) || substr(key, 33), owner, account, network, type, bytes, state, day,
      createdAt, expiresAt, 0, dueAt, 0 FROM (SELECT * FROM uploads LIMIT 1), numbers`;
  await inMeter(name, async (meter, { storage }) => {
    meter.clock = () => now;
    await meter.reserveUpload(asked(1));
    storage.sql.exec(open(9_998));
    expect(await meter.reserveUpload(asked(2))).toMatchObject({ admitted: true });
    expect(await meter.reserveUpload(asked(3))).toMatchObject({ admitted: false, code: "RATE_LIMITED" });
    storage.sql.exec("DELETE FROM uploads WHERE key LIKE '0%'");
  });
});
