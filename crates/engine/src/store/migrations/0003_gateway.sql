-- Programs of this user that call agents through the gateway. A revoked one stays for the tasks that are its own;
-- its name becomes free.
CREATE TABLE clients (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT NOT NULL,
    key_digest    BLOB NOT NULL UNIQUE,          -- SHA-256: the key itself is shown once and kept nowhere
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX clients_by_name ON clients (name) WHERE revoked_at_ms IS NULL;

-- Whose task it is. NULL: the user's own.
ALTER TABLE tasks ADD COLUMN client_id INTEGER REFERENCES clients (id);
CREATE INDEX tasks_by_client ON tasks (client_id, agent_id) WHERE client_id IS NOT NULL;

-- What was sent to those who listen to a task, for those who come back: one row an event.
CREATE TABLE gateway_events (
    id       INTEGER PRIMARY KEY,
    task_ref INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    n        INTEGER NOT NULL,                   -- counts on over restarts of the engine
    start_ms INTEGER NOT NULL,                   -- the start of the engine that sent it
    octets   INTEGER NOT NULL,                   -- of this row and all rows of the task before it
    v1       TEXT,                               -- `result` as sent; both NULL: the place where the log begins
    v03      TEXT,
    UNIQUE (task_ref, n)
) STRICT;

-- Who asked what, without any content.
CREATE TABLE gateway_traffic (
    id         INTEGER PRIMARY KEY,
    at_ms      INTEGER NOT NULL,
    client_id  INTEGER NOT NULL REFERENCES clients (id),
    agent_id   INTEGER NOT NULL REFERENCES agents (id),
    dialect    TEXT NOT NULL,
    binding    TEXT NOT NULL,
    method     TEXT NOT NULL,                    -- by its 1.0 name
    task_id    TEXT,
    state      TEXT,
    error_code INTEGER,
    took_ms    INTEGER NOT NULL,
    octets_in  INTEGER NOT NULL,
    octets_out INTEGER NOT NULL
) STRICT;
