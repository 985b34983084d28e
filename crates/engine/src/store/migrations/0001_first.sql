-- Times are Unix milliseconds (`_ms`). Words are decoded in Rust, so that a new word needs no new table.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A removed agent stays as a tombstone for the tasks that name it; its name becomes free.
CREATE TABLE agents (
    id                       INTEGER PRIMARY KEY AUTOINCREMENT,
    name                     TEXT NOT NULL,
    registered_url           TEXT NOT NULL,
    card_url                 TEXT,
    origin                   TEXT NOT NULL,
    interface_url            TEXT,
    binding                  TEXT,               -- JSONRPC, HTTP+JSON
    dialect                  TEXT,               -- 0.3, 1.0
    tenant                   TEXT,
    pinned_dialect           TEXT,
    use_card_url             INTEGER NOT NULL,
    allow_http               INTEGER NOT NULL,
    card_json                TEXT,
    card_etag                TEXT,
    card_read_at_ms          INTEGER,
    quirks_json              TEXT NOT NULL DEFAULT '{}',
    credential_kind          TEXT,               -- NULL: none. The credential itself is in the keychain
    credential_version       INTEGER NOT NULL DEFAULT 0,
    credential_changed_at_ms INTEGER,
    created_at_ms            INTEGER NOT NULL,
    removed_at_ms            INTEGER
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (name) WHERE removed_at_ms IS NULL;

CREATE TABLE tasks (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id           INTEGER NOT NULL REFERENCES agents (id),
    task_id            TEXT NOT NULL,
    context_id         TEXT,
    title              TEXT NOT NULL,
    state              TEXT NOT NULL,
    raw_state          TEXT NOT NULL,
    verdict            TEXT,                     -- lost, wrong-identity
    status_json        TEXT NOT NULL,
    metadata_json      TEXT,
    extra_json         TEXT,                     -- members that no version of the protocol names
    settled            INTEGER NOT NULL,         -- terminal, and confirmed by GetTask
    following          TEXT NOT NULL,            -- on, paused, ended
    mode               TEXT NOT NULL,            -- stream, push+poll, poll, reconnecting, paused, ended
    mode_since_ms      INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    confirmed_at_ms    INTEGER,
    confirmed_by       TEXT,
    trouble            TEXT,                     -- code of what keeps us from reading it
    trouble_since_ms   INTEGER,
    credential_version INTEGER NOT NULL,
    source             TEXT NOT NULL,            -- send, watch, import, gateway
    created_at_ms      INTEGER NOT NULL,
    updated_at_ms      INTEGER NOT NULL,
    terminal_at_ms     INTEGER,
    waiting_since_ms   INTEGER,
    replied_at_ms      INTEGER,
    pinned_at_ms       INTEGER,
    archived_at_ms     INTEGER,
    UNIQUE (agent_id, task_id)
) STRICT;
CREATE INDEX tasks_followed ON tasks (following) WHERE following <> 'ended';
CREATE INDEX tasks_by_update ON tasks (updated_at_ms, id);
CREATE INDEX tasks_by_state ON tasks (state, updated_at_ms, id);
CREATE INDEX tasks_by_end ON tasks (terminal_at_ms) WHERE terminal_at_ms IS NOT NULL;

CREATE TABLE artifacts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref    INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    artifact_id TEXT NOT NULL,
    position    INTEGER NOT NULL,
    head_json   TEXT NOT NULL,                   -- the artifact without its parts
    incomplete  INTEGER NOT NULL,
    UNIQUE (task_ref, artifact_id)
) STRICT;

CREATE TABLE artifact_parts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    artifact_ref INTEGER NOT NULL REFERENCES artifacts (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    part_json    TEXT NOT NULL
) STRICT;
CREATE INDEX artifact_parts_in_order ON artifact_parts (artifact_ref, position);

CREATE TABLE messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref     INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    message_id   TEXT NOT NULL,
    message_json TEXT NOT NULL
) STRICT;
CREATE INDEX messages_in_order ON messages (task_ref, position);

CREATE TABLE sends (
    message_id     TEXT NOT NULL PRIMARY KEY,
    agent_id       INTEGER NOT NULL REFERENCES agents (id),
    task_ref       INTEGER REFERENCES tasks (id) ON DELETE CASCADE,
    text           TEXT NOT NULL,
    state          TEXT NOT NULL,                -- sent, answered, unknown, failed
    sent_at_ms     INTEGER NOT NULL,
    answered_at_ms INTEGER
) STRICT;
CREATE INDEX sends_by_task ON sends (task_ref) WHERE task_ref IS NOT NULL;

-- The change feed. A row and the change that announces it are one transaction.
CREATE TABLE changes (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms     INTEGER NOT NULL,
    agent_id  INTEGER,
    task_ref  INTEGER REFERENCES tasks (id) ON DELETE CASCADE,
    source    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    body_json TEXT NOT NULL
) STRICT;
CREATE INDEX changes_by_task ON changes (task_ref, seq);

-- What an agent does that the protocol does not foresee: its report card.
CREATE TABLE oddities (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id    INTEGER NOT NULL REFERENCES agents (id),
    kind        TEXT NOT NULL,
    detail      TEXT NOT NULL,
    count       INTEGER NOT NULL,
    first_at_ms INTEGER NOT NULL,
    last_at_ms  INTEGER NOT NULL,
    UNIQUE (agent_id, kind)
) STRICT;
