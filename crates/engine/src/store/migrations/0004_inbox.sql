-- Where agents may call us back: one row for each address that was handed out.
CREATE TABLE registrations (
    id                         INTEGER PRIMARY KEY AUTOINCREMENT,
    path                       TEXT NOT NULL UNIQUE,   -- the last segment of the address
    purpose                    TEXT NOT NULL,          -- task, self-test
    agent_id                   INTEGER REFERENCES agents (id), -- NULL: our own self-test
    task_ref                   INTEGER REFERENCES tasks (id) ON DELETE CASCADE, -- NULL: not known yet
    config_id                  TEXT NOT NULL,          -- ours, sent to the agent
    remote_id                  TEXT,                   -- what the agent calls it
    url                        TEXT NOT NULL,          -- the whole address it was registered with
    state                      TEXT NOT NULL,          -- pending, active, failed, ended, removed
    policy                     TEXT NOT NULL,          -- any, all
    key_version                INTEGER NOT NULL,       -- of the key that its secrets are derived from
    scheme                     TEXT,                   -- bearer, basic; NULL: no Authorization is asked for
    token_sha256               BLOB,
    credential_sha256          BLOB,                   -- of what stands after the scheme
    previous_token_sha256      BLOB,
    previous_credential_sha256 BLOB,
    previous_until_ms          INTEGER,
    failure_code               TEXT,                   -- why it is not at the agent
    failure_detail             TEXT,
    echoed                     INTEGER NOT NULL DEFAULT 0, -- the agent wrote a secret of it into an answer
    created_at_ms              INTEGER NOT NULL,
    registered_at_ms           INTEGER,
    ended_at_ms                INTEGER,
    answers_until_ms           INTEGER,                -- after the end: callbacks are still taken until then
    removed_at_ms              INTEGER,                -- by the user: senders are told to stop
    last_callback_at_ms        INTEGER,
    revision                   INTEGER NOT NULL        -- grows with every change that the inbox must know of
) STRICT;
CREATE INDEX registrations_by_task ON registrations (task_ref);
CREATE INDEX registrations_by_agent ON registrations (agent_id, state);
CREATE INDEX registrations_by_revision ON registrations (revision);

-- The highest revision of a row that is gone: none is given twice, or the inbox would not read the new one.
CREATE TRIGGER registrations_gone AFTER DELETE ON registrations BEGIN
    INSERT INTO meta (key, value) VALUES ('registrations_gone', CAST(OLD.revision AS TEXT))
    ON CONFLICT (key) DO UPDATE SET value = CAST(max(CAST(value AS INTEGER), OLD.revision) AS TEXT);
END;

-- What arrived with a valid proof. The same body for the same registration is one row with a count.
CREATE TABLE callbacks (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    registration_ref   INTEGER NOT NULL REFERENCES registrations (id) ON DELETE CASCADE,
    task_ref           INTEGER REFERENCES tasks (id) ON DELETE CASCADE, -- NULL: its task is not known yet
    at_ms              INTEGER NOT NULL,
    last_at_ms         INTEGER NOT NULL,
    count              INTEGER NOT NULL,
    sha256             BLOB NOT NULL,
    size               INTEGER NOT NULL,
    body               BLOB,                           -- NULL once it is no longer kept
    headers_json       TEXT NOT NULL,                  -- of interest, secrets masked
    token_proof        TEXT NOT NULL,                  -- unused, valid, valid-old, missing
    credential_proof   TEXT NOT NULL,
    shape              TEXT NOT NULL,                  -- task, message, status, artifact
    claimed_task_id    TEXT NOT NULL,
    claimed_context_id TEXT,
    claimed_state      TEXT,                           -- NULL: it says nothing of the state
    claimed_raw_state  TEXT,
    dirty              INTEGER,                        -- the number its last arrival raised the task to
    verdict            TEXT NOT NULL,
    verdict_at_ms      INTEGER,
    UNIQUE (registration_ref, sha256)
) STRICT;
CREATE INDEX callbacks_by_task ON callbacks (task_ref, id);

-- A task is due for a read while dirty > clean. Apart from the task's own row, which can be long.
CREATE TABLE due_reads (
    task_ref INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    dirty    INTEGER NOT NULL,
    clean    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX due_reads_open ON due_reads (task_ref) WHERE dirty > clean;

-- What proved itself and is not taken: of another task, or of a send that failed. Never the body.
CREATE TABLE quarantine (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    registration_ref INTEGER NOT NULL REFERENCES registrations (id) ON DELETE CASCADE,
    reason           TEXT NOT NULL,
    at_ms            INTEGER NOT NULL,
    last_at_ms       INTEGER NOT NULL,
    count            INTEGER NOT NULL,
    size             INTEGER NOT NULL,
    sha256           BLOB NOT NULL,
    detail           TEXT NOT NULL,                    -- a cleaned line
    UNIQUE (registration_ref, reason, sha256)
) STRICT;

-- What was refused, counted by reason.
CREATE TABLE refusals (
    registration_ref INTEGER NOT NULL REFERENCES registrations (id) ON DELETE CASCADE,
    reason           TEXT NOT NULL,
    count            INTEGER NOT NULL,
    first_at_ms      INTEGER NOT NULL,
    last_at_ms       INTEGER NOT NULL,
    detail           TEXT NOT NULL,                    -- of the last one, a cleaned line
    PRIMARY KEY (registration_ref, reason)
) STRICT, WITHOUT ROWID;
