// The tables of a payer's meter. Steps are only ever added.

export const steps: readonly string[] = [
  `
  CREATE TABLE jobs (
    admission TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    account TEXT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    operation TEXT NOT NULL,
    ref TEXT,
    seen TEXT,
    status TEXT,
    reserved INTEGER NOT NULL,
    charged INTEGER NOT NULL DEFAULT 0,
    assumed INTEGER NOT NULL DEFAULT 0,
    admittedAt INTEGER NOT NULL,
    ttlMs INTEGER NOT NULL,
    retentionMs INTEGER NOT NULL,
    expiresAt INTEGER NOT NULL,
    dueAt INTEGER NOT NULL,
    endedAt INTEGER,
    webhook TEXT,
    idempotencyKey TEXT
  ) WITHOUT ROWID;
  CREATE INDEX jobs_due ON jobs (dueAt) WHERE endedAt IS NULL;
  CREATE INDEX jobs_ended ON jobs (assumed, endedAt) WHERE endedAt IS NOT NULL;
  CREATE INDEX jobs_ref ON jobs (ref) WHERE ref IS NOT NULL;

  CREATE TABLE idempotency (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    admission TEXT NOT NULL,
    ref TEXT,
    expiresAt INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
  ) WITHOUT ROWID;
  CREATE INDEX idempotency_expiry ON idempotency (expiresAt);

  CREATE TABLE windows (
    account TEXT NOT NULL,
    per TEXT NOT NULL,
    scope TEXT NOT NULL,
    newest INTEGER NOT NULL,
    counts BLOB NOT NULL,
    emptyAt INTEGER NOT NULL,
    PRIMARY KEY (account, per, scope)
  ) WITHOUT ROWID;

  CREATE TABLE spend (
    account TEXT NOT NULL,
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    known INTEGER NOT NULL,
    assumed INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    forgiven INTEGER NOT NULL,
    PRIMARY KEY (account, day, model)
  ) WITHOUT ROWID;
  CREATE TABLE earlier (known INTEGER NOT NULL, assumed INTEGER NOT NULL);
  INSERT INTO earlier VALUES (0, 0);

  CREATE TABLE leases (
    day INTEGER PRIMARY KEY,
    allowance INTEGER,
    until INTEGER NOT NULL
  );

  CREATE TABLE outbox (
    admission TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    tries INTEGER NOT NULL,
    dueAt INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX outbox_due ON outbox (dueAt);
  CREATE TABLE outbox_bodies (
    admission TEXT NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (admission, part)
  );

  CREATE TABLE settings (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL);
  CREATE TABLE revocations (name TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
  `,
  `
  CREATE TABLE media (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    field TEXT NOT NULL,
    model TEXT NOT NULL,
    cost REAL,
    size INTEGER,
    completedAt INTEGER NOT NULL,
    expiresAt INTEGER NOT NULL,
    removed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, key)
  );
  CREATE INDEX media_newest ON media (owner, completedAt, key);
  CREATE INDEX media_expiry ON media (expiresAt);
  `,
  "ALTER TABLE idempotency ADD COLUMN digest TEXT",
  `
  ALTER TABLE jobs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN counters TEXT NOT NULL DEFAULT '';
  ALTER TABLE windows ADD COLUMN id INTEGER;
  CREATE TABLE counted (turn INTEGER NOT NULL);
  INSERT INTO counted VALUES (0);
  `,
  "CREATE TABLE last_claim (id INTEGER PRIMARY KEY CHECK (id = 1), plan TEXT NOT NULL, planFrom TEXT NOT NULL)",
];
