-- Finding tasks, and what their user keeps of them.

ALTER TABLE tasks ADD COLUMN muted_at_ms INTEGER;      -- no notices of it
ALTER TABLE tasks ADD COLUMN snoozed_at_ms INTEGER;    -- its question of before then does not need its user …
ALTER TABLE tasks ADD COLUMN snoozed_until_ms INTEGER; -- … before this

-- Apart from the task's own row, which every confirmation writes.
CREATE TABLE task_notes (
    task_ref INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    text     TEXT NOT NULL,
    at_ms    INTEGER NOT NULL
) STRICT;

CREATE TABLE saved_views (
    screen TEXT NOT NULL,                        -- tasks, inbox
    name   TEXT NOT NULL COLLATE NOCASE,
    query  TEXT NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (screen, name)
) STRICT, WITHOUT ROWID;

-- The words of tasks, under their row numbers. It keeps no text: that is in the tables it was made from.
CREATE VIRTUAL TABLE search USING fts5 (
    title, question, answer, conversation, note, ids,
    content = '', contentless_delete = 1, prefix = '2', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER tasks_gone AFTER DELETE ON tasks BEGIN
    DELETE FROM search WHERE rowid = OLD.id;
END;

-- Tasks whose words are to be read anew, written with the change. n grows with each, so that none is overlooked that
-- comes while they are read.
CREATE TABLE search_due (
    task_ref INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    n        INTEGER NOT NULL
) STRICT;
-- Those that were there before: they are gone through from the newest to the oldest, this one next.
INSERT INTO meta (key, value) SELECT 'search_next', CAST(max(id) AS TEXT) FROM tasks HAVING max(id) IS NOT NULL;

-- Lists are in the order of the last change. The first index holds whatever a list can be filtered by, so that a
-- filter that takes few of many reads no rows; the others are for what is asked for most, or is rare.
DROP INDEX tasks_by_update;
DROP INDEX tasks_by_state;
DROP INDEX tasks_followed;
CREATE INDEX tasks_listed ON tasks (updated_at_ms, id, agent_id, state, verdict, following, mode, confirmed_by,
    archived_at_ms, pinned_at_ms, muted_at_ms);
CREATE INDEX tasks_by_shown ON tasks (coalesce(verdict, state), updated_at_ms, id) WHERE archived_at_ms IS NULL;
CREATE INDEX tasks_followed ON tasks (updated_at_ms, id) WHERE following <> 'ended';
CREATE INDEX tasks_pinned ON tasks (updated_at_ms, id) WHERE pinned_at_ms IS NOT NULL;
CREATE INDEX tasks_muted ON tasks (updated_at_ms, id) WHERE muted_at_ms IS NOT NULL;
CREATE INDEX tasks_archived ON tasks (updated_at_ms, id) WHERE archived_at_ms IS NOT NULL;

-- The same for callbacks. Bodies stand before the columns that are asked for, and may be long.
DROP INDEX callbacks_by_time;
CREATE INDEX callbacks_by_time ON callbacks (at_ms, id, verdict, claimed_state, task_ref, registration_ref);
CREATE INDEX callbacks_unlike ON callbacks (verdict, at_ms, id, task_ref)
    WHERE verdict NOT IN ('pending', 'confirmed', 'duplicate');
