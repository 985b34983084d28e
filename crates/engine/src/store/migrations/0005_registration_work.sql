-- How far the work on each registration is.
ALTER TABLE registrations ADD COLUMN asked_at_ms INTEGER;      -- the agent was asked for it and may have it
ALTER TABLE registrations ADD COLUMN sent_version INTEGER;     -- the key version whose proofs the agent has
ALTER TABLE registrations ADD COLUMN checked_at_ms INTEGER;    -- the agent's list was looked at, the task read
ALTER TABLE registrations ADD COLUMN withdrawn_at_ms INTEGER;  -- not at the agent any more
ALTER TABLE registrations ADD COLUMN next_try_at_ms INTEGER;   -- not before; NULL: now, or given up
ALTER TABLE registrations ADD COLUMN given_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE registrations ADD COLUMN tries INTEGER NOT NULL DEFAULT 0; -- that failed in a row
CREATE INDEX registrations_at_work ON registrations (id) WHERE withdrawn_at_ms IS NULL AND purpose = 'task';

-- The user's wish for one task: on, off; NULL: as its agent.
ALTER TABLE tasks ADD COLUMN push TEXT;
