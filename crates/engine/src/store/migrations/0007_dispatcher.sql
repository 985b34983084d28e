-- What leaves for the callbacks that clients registered: to whom, with what, and what came of it.

-- Receivers, one a client and origin: failures, pauses and drops are counted together. One on this machine is called
-- only while it is approved.
CREATE TABLE targets (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    client_id        INTEGER NOT NULL REFERENCES clients (id),
    origin           TEXT NOT NULL,
    loopback         INTEGER NOT NULL,
    approved_at_ms   INTEGER,
    paused_at_ms     INTEGER,
    pause_reason     TEXT,                       -- user, failing
    failures         INTEGER NOT NULL DEFAULT 0, -- in a row
    failing_since_ms INTEGER,
    probe_at_ms      INTEGER,                    -- not called before
    last_code        TEXT,
    last_failed_at_ms INTEGER,
    delivered_at_ms  INTEGER,
    updates          INTEGER NOT NULL DEFAULT 0, -- best effort: changes that could have been told
    dropped          INTEGER NOT NULL DEFAULT 0, -- of these, never tried
    created_at_ms    INTEGER NOT NULL,
    UNIQUE (client_id, origin)
) STRICT;

-- Secrets that clients gave for their callbacks: digests here, the values in the keyring under the row's number.
CREATE TABLE client_secrets (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    client_id     INTEGER NOT NULL REFERENCES clients (id),
    digest        BLOB NOT NULL,
    kept_at_ms    INTEGER,                       -- NULL: may not be in the keyring yet
    touched_at_ms INTEGER,                       -- a registration that will use it began
    doomed_at_ms  INTEGER                        -- being deleted from the keyring
) STRICT;
CREATE UNIQUE INDEX client_secrets_by_digest ON client_secrets (client_id, digest) WHERE doomed_at_ms IS NULL;

CREATE TABLE client_push_configs (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref          INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    client_id         INTEGER NOT NULL REFERENCES clients (id),
    target_id         INTEGER NOT NULL REFERENCES targets (id),
    config_id         TEXT NOT NULL,
    url               TEXT NOT NULL,
    dialect           TEXT NOT NULL,
    form              TEXT NOT NULL,             -- task, status
    scheme            TEXT,
    token_secret      INTEGER REFERENCES client_secrets (id),
    credential_secret INTEGER REFERENCES client_secrets (id),
    created_at_ms     INTEGER NOT NULL,
    disabled_at_ms    INTEGER,
    disabled_reason   TEXT,
    UNIQUE (task_ref, config_id)
) STRICT;
CREATE INDEX client_push_configs_by_target ON client_push_configs (target_id);
CREATE INDEX client_push_configs_by_token ON client_push_configs (token_secret) WHERE token_secret IS NOT NULL;
CREATE INDEX client_push_configs_by_credential ON client_push_configs (credential_secret)
    WHERE credential_secret IS NOT NULL;

-- A change of a task that is to be told. Written in the transaction of the change.
CREATE TABLE delivery_requests (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    state    TEXT NOT NULL,
    at_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX delivery_requests_by_task ON delivery_requests (task_ref);

-- What is told, once a dialect and form. Gone when nobody can want it any more.
CREATE TABLE delivery_bodies (
    request_ref INTEGER NOT NULL REFERENCES delivery_requests (id) ON DELETE CASCADE,
    dialect     TEXT NOT NULL,
    form        TEXT NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (request_ref, dialect, form)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id    TEXT NOT NULL UNIQUE,
    request_ref   INTEGER NOT NULL REFERENCES delivery_requests (id) ON DELETE CASCADE,
    config_ref    INTEGER REFERENCES client_push_configs (id) ON DELETE SET NULL,
    target_id     INTEGER NOT NULL REFERENCES targets (id),
    dialect       TEXT NOT NULL,
    form          TEXT NOT NULL,
    lane          TEXT NOT NULL,
    state         TEXT NOT NULL,
    tries         INTEGER NOT NULL DEFAULT 0,
    refused       INTEGER NOT NULL DEFAULT 0,
    blamed        INTEGER NOT NULL DEFAULT 0,
    due_at_ms     INTEGER,                       -- NULL: not tried again by itself
    waits_for     TEXT,                          -- what keeps it although it is due: keyring_locked, offline
    last_code     TEXT,
    created_at_ms INTEGER NOT NULL,
    done_at_ms    INTEGER
) STRICT;
CREATE INDEX deliveries_due ON deliveries (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX deliveries_by_config ON deliveries (config_ref, id);
CREATE INDEX deliveries_by_target ON deliveries (target_id, id);
CREATE INDEX deliveries_by_request ON deliveries (request_ref);
CREATE INDEX deliveries_by_end ON deliveries (lane, done_at_ms) WHERE done_at_ms IS NOT NULL;

-- Written before the first octet leaves, completed when the attempt is over.
CREATE TABLE delivery_attempts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_ref  INTEGER NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    started_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER,
    counted       INTEGER NOT NULL DEFAULT 0,    -- whether it used up a try
    status        INTEGER,
    code          TEXT,
    address       TEXT
) STRICT;
CREATE INDEX delivery_attempts_in_order ON delivery_attempts (delivery_ref, id);
CREATE INDEX delivery_attempts_open ON delivery_attempts (id) WHERE ended_at_ms IS NULL;
