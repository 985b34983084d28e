-- The task as a read told it: one document for all the callbacks that the read judged.
CREATE TABLE confirmations (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref  INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    at_ms     INTEGER NOT NULL,
    sha256    BLOB NOT NULL,
    document  TEXT NOT NULL,                     -- a 1.0 task
    size      INTEGER NOT NULL,
    shortened INTEGER NOT NULL                   -- too long to be kept whole: without content
) STRICT;
CREATE INDEX confirmations_by_task ON confirmations (task_ref, id);
CREATE INDEX confirmations_by_age ON confirmations (at_ms);

ALTER TABLE callbacks ADD COLUMN reason TEXT;    -- of the verdict
ALTER TABLE callbacks ADD COLUMN confirmed_state TEXT;
ALTER TABLE callbacks ADD COLUMN confirmation_ref INTEGER REFERENCES confirmations (id) ON DELETE SET NULL;
ALTER TABLE callbacks ADD COLUMN sameness BLOB;  -- digest of the claim: the same in other octets has the same
ALTER TABLE callbacks ADD COLUMN out_of_order INTEGER NOT NULL DEFAULT 0;
CREATE INDEX callbacks_open ON callbacks (task_ref, id) WHERE verdict IN ('pending', 'unreachable', 'ahead');
CREATE INDEX callbacks_by_sameness ON callbacks (task_ref, sameness) WHERE sameness IS NOT NULL;
CREATE INDEX callbacks_by_confirmation ON callbacks (confirmation_ref) WHERE confirmation_ref IS NOT NULL;
CREATE INDEX callbacks_by_time ON callbacks (at_ms, id);

-- States that callbacks of a task have claimed so far.
CREATE TABLE claimed_states (
    task_ref INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    state    TEXT NOT NULL,
    PRIMARY KEY (task_ref, state)
) STRICT, WITHOUT ROWID;

-- How each end of a task came to be known, and whether it was missed by the way it should have come.
CREATE TABLE ends (
    task_ref        INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    agent_id        INTEGER NOT NULL REFERENCES agents (id),
    at_ms           INTEGER NOT NULL,            -- when it was found
    found_by        TEXT NOT NULL,               -- stream, push, poll, manual, gateway
    mode            TEXT NOT NULL,               -- how the task was followed then
    known_since_ms  INTEGER NOT NULL,
    heard_before_ms INTEGER,
    trouble         TEXT,
    run_started_ms  INTEGER NOT NULL,
    registered_at_ms INTEGER,                    -- since when a registration was in place
    judge_at_ms     INTEGER,                     -- NULL: judged
    told_at_ms      INTEGER,                     -- when the first callback claimed that end
    missed          INTEGER NOT NULL,
    way             TEXT,                        -- by which it should have come
    why             TEXT
) STRICT;
CREATE INDEX ends_to_judge ON ends (judge_at_ms) WHERE judge_at_ms IS NOT NULL;
CREATE INDEX ends_by_agent ON ends (agent_id);
