-- SPDX-License-Identifier: MIT
-- The queues of a store. Each transaction holds the store's lock. No triggers: sql.c is all there is.
CREATE TABLE IF NOT EXISTS queue(
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, format INTEGER NOT NULL,
  next INTEGER NOT NULL DEFAULT 1,               -- the next id; none is used again
  over INTEGER NOT NULL DEFAULT 0,               -- how many commands came to be over
  failure INTEGER,                               -- the first failure that was not told yet
  told TEXT, told_id INTEGER, told_cancelled INTEGER);  -- the last one told: by this nonce
CREATE TABLE IF NOT EXISTS command(
  queue INTEGER NOT NULL, id INTEGER NOT NULL,
  state TEXT NOT NULL,                           -- blocked waiting running succeeded failed cancelled
  priority INTEGER NOT NULL, needs INTEGER NOT NULL, tag TEXT, halt TEXT NOT NULL,
  spec TEXT NOT NULL,                            -- JSON (spec.c)
  starts INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  transients INTEGER NOT NULL DEFAULT 0, preempted INTEGER NOT NULL DEFAULT 0,
  lost INTEGER NOT NULL DEFAULT 0, lost_early INTEGER NOT NULL DEFAULT 0,
  refused INTEGER NOT NULL DEFAULT 0,
  token TEXT, worker TEXT, since INTEGER,        -- running: the lease; token stays with the result
  asked INTEGER,                                 -- running: to end, for that command; 0: for a user
  refused_on TEXT, blamed TEXT,                  -- host and worker where a start failed last
  rested TEXT, rest INTEGER,                     -- waiting: this worker leaves it alone until then
  result TEXT, ended INTEGER, because INTEGER, over INTEGER,
  PRIMARY KEY(queue, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS command_state ON command(queue, state, priority DESC, id, needs, refused_on, rested, rest, tag);
CREATE INDEX IF NOT EXISTS command_worker ON command(queue, worker) WHERE worker IS NOT NULL;
CREATE INDEX IF NOT EXISTS command_over ON command(queue, over) WHERE over IS NOT NULL;
CREATE TABLE IF NOT EXISTS after(                -- id runs after needs has succeeded
  queue INTEGER NOT NULL, needs INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(queue, needs, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS after_id ON after(queue, id);
CREATE TABLE IF NOT EXISTS once(                 -- of key (or call NONCE), numbers number.. are commands id..
  queue INTEGER NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY(queue, key, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS worker(
  queue INTEGER NOT NULL, token TEXT NOT NULL, number INTEGER NOT NULL, host TEXT NOT NULL,
  silence INTEGER NOT NULL, life INTEGER NOT NULL, faults INTEGER NOT NULL DEFAULT 0, spec TEXT NOT NULL,
  PRIMARY KEY(queue, token), UNIQUE(queue, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS setting(
  queue INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(queue, name)) WITHOUT ROWID;
