// The tables of an account. Steps are only ever added.

/** What a list of Pods can be filtered by: read out of the record, so that it is never told apart from it. */
const podColumns = [
  "name",
  "image",
  "templateId",
  "networkVolumeId",
  "containerRegistryAuthId",
  "desiredStatus",
  "computeType",
  "gpuTypeId",
  "cpuFlavorId",
  "dataCenterId",
];

/** `seq` is the order of creation; every other column is read out of the record. */
function records(table: string, columns: readonly string[], more = ""): string {
  const generated = ["id", ...columns].map((name) => `${name} TEXT AS (json ->> '$.${name}') VIRTUAL`);
  return `
  CREATE TABLE ${table} (seq INTEGER PRIMARY KEY AUTOINCREMENT, json TEXT NOT NULL, ${generated.join(", ")}${more});
  CREATE UNIQUE INDEX ${table}_id ON ${table} (id);`;
}

function indexes(table: string, columns: readonly string[]): string {
  return columns.map((column) => `CREATE INDEX ${table}_${column} ON ${table} (${column});`).join("\n  ");
}

export const steps: readonly string[] = [
  `
  ${records("templates", ["name", "containerRegistryAuthId"], ", bound INTEGER NOT NULL DEFAULT 0")}
  CREATE UNIQUE INDEX templates_name ON templates (name);
  ${indexes("templates", ["containerRegistryAuthId", "bound"])}

  ${records("endpoints", ["templateId"], ", meter INTEGER NOT NULL")}
  ${indexes("endpoints", ["templateId"])}
  CREATE TABLE endpoint_volumes (volume TEXT NOT NULL, endpoint TEXT NOT NULL, PRIMARY KEY (volume, endpoint)) WITHOUT ROWID;
  CREATE INDEX endpoint_volumes_endpoint ON endpoint_volumes (endpoint);

  ${records("pods", podColumns)}
  ${indexes("pods", podColumns)}
  ${records("terminated_pods", podColumns)}

  ${records("volumes", [])}

  ${records("registry_auths", ["name"], ", sealed BLOB NOT NULL")}
  CREATE UNIQUE INDEX registry_auths_name ON registry_auths (name);

  CREATE TABLE meters (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    resource TEXT NOT NULL,
    gpuTypeId TEXT NOT NULL,
    microUsdPerHour INTEGER NOT NULL,
    gb INTEGER NOT NULL,
    dataCenterId TEXT NOT NULL,
    templateId TEXT NOT NULL,
    imageName TEXT NOT NULL,
    borrowed INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX meters_all ON meters (
    resource, kind, gpuTypeId, microUsdPerHour, gb, dataCenterId, templateId, imageName, borrowed
  );
  CREATE INDEX meters_borrowed ON meters (templateId) WHERE borrowed = 1;
  CREATE TABLE clocks (resource TEXT PRIMARY KEY, meter INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE usage (
    kind TEXT NOT NULL,
    hour INTEGER NOT NULL,
    meter INTEGER NOT NULL,
    worker TEXT NOT NULL,
    ms INTEGER NOT NULL,
    PRIMARY KEY (kind, hour, meter, worker)
  ) WITHOUT ROWID;
  CREATE INDEX usage_meter ON usage (meter);

  CREATE TABLE duties (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    dueAt INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
  ) WITHOUT ROWID;
  CREATE INDEX duties_due ON duties (dueAt);

  CREATE TABLE borrowed_templates (id TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE credits (
    template TEXT NOT NULL,
    account TEXT NOT NULL,
    microUsd INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    PRIMARY KEY (template, account)
  ) WITHOUT ROWID;

  ${records("public_templates", [], ", owner TEXT NOT NULL")}
  CREATE TABLE borrowers (template TEXT NOT NULL, account TEXT NOT NULL, PRIMARY KEY (template, account)) WITHOUT ROWID;
  `,
  // No credentials are kept but a name for whom they are, and what was lent between accounts is copied instead.
  `
  UPDATE registry_auths SET sealed = x'';
  ALTER TABLE registry_auths ADD COLUMN username TEXT NOT NULL DEFAULT '';
  ALTER TABLE pods ADD COLUMN templateCopy TEXT;
  ALTER TABLE endpoints ADD COLUMN templateCopy TEXT;
  DELETE FROM duties WHERE kind = 'credit';
  DELETE FROM borrowed_templates;
  DELETE FROM credits;
  DELETE FROM borrowers;
  `,
  "UPDATE endpoints SET json = json_set(json, '$.type', 'QB')",
  "CREATE TABLE spent (endpoint TEXT PRIMARY KEY, microUsd INTEGER NOT NULL) WITHOUT ROWID",
];
