-- What was sent to those who listen to a task: events that were told together are one row, a line each.
CREATE TABLE gateway_rows (
    id       INTEGER PRIMARY KEY,
    task_ref INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    n        INTEGER NOT NULL,                   -- of its last event; counts on over restarts of the engine
    count    INTEGER NOT NULL,                   -- its events; 0: the place where the log begins
    start_ms INTEGER NOT NULL,                   -- the start of the engine that sent them
    octets   INTEGER NOT NULL,                   -- of this row and all rows of the task before it
    v1       TEXT,                               -- each `result` as sent
    v03      TEXT,
    UNIQUE (task_ref, n)
) STRICT;
INSERT INTO gateway_rows (id, task_ref, n, count, start_ms, octets, v1, v03)
    SELECT id, task_ref, n, v1 IS NOT NULL OR v03 IS NOT NULL, start_ms, octets, v1, v03 FROM gateway_events;
DROP TABLE gateway_events;
ALTER TABLE gateway_rows RENAME TO gateway_events;
