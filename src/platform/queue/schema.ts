// The tables of an endpoint's queue. Steps are only ever added.

export const steps: readonly string[] = [
  `
  CREATE TABLE jobs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    position INTEGER NOT NULL,
    lowPriority INTEGER NOT NULL,
    submittedAt INTEGER NOT NULL,
    queuedAt INTEGER NOT NULL,
    takenAt INTEGER,
    finishedAt INTEGER,
    ttlMs INTEGER NOT NULL,
    executionTimeoutMs INTEGER,
    retentionMs INTEGER NOT NULL,
    webhook TEXT,
    origin TEXT NOT NULL,
    worker TEXT,
    retries INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    input INTEGER NOT NULL,
    inputFrom INTEGER NOT NULL,
    inputTo INTEGER NOT NULL,
    output INTEGER,
    dueAt INTEGER NOT NULL
  );
  CREATE INDEX jobs_waiting ON jobs (position) WHERE status = 'IN_QUEUE';
  CREATE INDEX jobs_running ON jobs (worker) WHERE status = 'IN_PROGRESS';
  CREATE INDEX jobs_due ON jobs (dueAt);

  CREATE TABLE payloads (
    key INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (key, part)
  ) WITHOUT ROWID;
  CREATE TABLE uploads (key INTEGER PRIMARY KEY, dueAt INTEGER NOT NULL);
  CREATE INDEX uploads_due ON uploads (dueAt);

  CREATE TABLE chunks (
    job INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (job, part)
  ) WITHOUT ROWID;

  CREATE TABLE outbox (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER NOT NULL,
    url TEXT NOT NULL,
    origin TEXT NOT NULL,
    head TEXT NOT NULL,
    input INTEGER NOT NULL,
    inputFrom INTEGER NOT NULL,
    inputTo INTEGER NOT NULL,
    output INTEGER,
    tries INTEGER NOT NULL,
    dueAt INTEGER NOT NULL
  );
  CREATE INDEX outbox_due ON outbox (dueAt);
  CREATE INDEX outbox_job ON outbox (job);

  CREATE TABLE totals (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    payload INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    waitingLow INTEGER NOT NULL,
    running INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    retried INTEGER NOT NULL
  );
  INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

  CREATE TABLE presence (id INTEGER PRIMARY KEY CHECK (id = 1), until INTEGER NOT NULL);
  INSERT INTO presence VALUES (1, 0);

  CREATE TABLE settings (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL);
  `,
  `
  CREATE TABLE executed (
    meter INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    worker TEXT NOT NULL,
    ms INTEGER NOT NULL,
    tellAt INTEGER,
    PRIMARY KEY (meter, hour, worker)
  ) WITHOUT ROWID;
  CREATE INDEX executed_tell ON executed (tellAt) WHERE tellAt IS NOT NULL;
  `,
  `
  ALTER TABLE jobs ADD COLUMN lostAt INTEGER;
  `,
];
