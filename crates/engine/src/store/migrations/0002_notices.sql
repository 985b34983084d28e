-- What was, is and will be told on the desktop. A row is written in the transaction of the change that makes it.
CREATE TABLE notices (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    task_ref         INTEGER REFERENCES tasks (id) ON DELETE CASCADE, -- NULL: of no task
    kind             TEXT NOT NULL,              -- waiting, sign-in, failed, finished, unconfirmed, lost, test
    key              TEXT NOT NULL UNIQUE,       -- the transition: what is told once is not told again
    title            TEXT NOT NULL,
    body             TEXT NOT NULL,
    created_at_ms    INTEGER NOT NULL,
    shown_at_ms      INTEGER,                    -- what is shown at most once: written before it is shown
    outcome          TEXT,                       -- NULL: pending. shown, suppressed, failed, no-desktop, not-permitted, withdrawn, merged
    detail           TEXT,
    snoozed_until_ms INTEGER
) STRICT;
CREATE INDEX notices_by_outcome ON notices (outcome, kind);
CREATE INDEX notices_by_task ON notices (task_ref, id);

-- The user asked us to cancel: that it then is canceled is no news.
ALTER TABLE tasks ADD COLUMN cancel_asked_at_ms INTEGER;
