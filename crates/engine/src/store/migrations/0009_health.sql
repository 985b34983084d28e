-- How the parts of the program were: a row for each time that one of them came into another state.
CREATE TABLE health_history (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    component TEXT NOT NULL,
    state     TEXT NOT NULL,                     -- ok, warn, bad
    at_ms     INTEGER NOT NULL,
    detail    TEXT NOT NULL
) STRICT;
CREATE INDEX health_history_by_component ON health_history (component, id);
