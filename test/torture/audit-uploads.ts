// The files in the bucket, held against the meters' rows: each is somebody's, and what was answered with 201 is there.
import { DatabaseSync } from "node:sqlite";
import { objectFiles, tablesOf } from "./leftovers.ts";

interface UploadRow {
  readonly key: string;
  readonly state: string;
  readonly bytes: number;
}

/** When every URL has ended, and every file that is over was removed. Of a server that does not run. */
export async function auditUploads(disk: string, promised: ReadonlySet<string>): Promise<string[]> {
  const files = await filesInBucket();
  const faults: string[] = [];
  const kept = new Map<string, UploadRow>();
  for (const file of objectFiles(disk, "UserMeter")) {
    const { rows, stored } = readUploads(file);
    for (const row of rows) {
      if (row.state === "kept") kept.set(row.key, row);
      else faults.push(`the upload ${row.key} is ${row.state} for ever`);
    }
    const sum = rows.reduce((bytes, { state, bytes: own }) => bytes + (state === "over" ? 0 : own), 0);
    if (sum !== stored) faults.push(`a meter says that ${stored} bytes are kept, and its rows ${sum}`);
  }
  for (const name of files) if (!kept.has(name)) faults.push(`${name} lies in the bucket, and is nobody's`);
  for (const name of kept.keys()) if (!files.has(name)) faults.push(`the upload ${name} counts, and has no file`);
  for (const name of promised) if (!kept.has(name)) faults.push(`the upload ${name} was taken, and is gone`);
  console.log(`${files.size} files of uploads in the bucket, ${kept.size} rows; ${promised.size} were promised`);
  return faults;
}

/** By then every link has ended. */
export async function auditEmptyBucket(): Promise<string[]> {
  return [...(await filesInBucket())].map((name) => `${name} lies in the bucket, and its link has ended long ago`);
}

/** The stand-in lives in this process. */
async function filesInBucket(): Promise<ReadonlySet<string>> {
  const headers = { "cf-r2-request": JSON.stringify({ version: 1, method: "list", prefix: "uploads/" }) };
  const store = "r2";
  const { default: r2 } = (await import(`../support/stubs/${store}.js`)) as {
    default: { fetch(request: Request): Promise<Response> };
  };
  const answer = await r2.fetch(new Request("http://r2.test/", { headers }));
  const metadataBytes = Number(answer.headers.get("cf-r2-metadata-size"));
  const listed = JSON.parse((await answer.text()).slice(0, metadataBytes)) as { objects: { name: string }[] };
  return new Set(listed.objects.map(({ name }) => name.replace("uploads/", "")));
}

function readUploads(file: string): { rows: UploadRow[]; stored: number } {
  const database = new DatabaseSync(file);
  try {
    if (!tablesOf(database).includes("uploads")) return { rows: [], stored: 0 };
    const rows = database.prepare("SELECT key, state, bytes FROM uploads").all() as unknown as UploadRow[];
    const query = "SELECT SUM(used + reserved) AS stored FROM upload_counts WHERE account = '' AND day = -1";
    return { rows, stored: Number(database.prepare(query).get()?.["stored"] ?? 0) };
  } finally {
    database.close();
  }
}
