-- What the web and the workers may do in the server's database, and nothing more. Run as the owner
-- of the tables, after every upgrade: `heldout serve FOLDER --prepare` does. The owner's password is
-- then needed by nobody who serves.
--
-- heldout_web      people, tokens, what is asked for, and a custodian's decisions in the ledger. It
--                  cannot book, cannot write an answer, and sees no sketch of who is in the rows.
-- heldout_worker   jobs, scores' states, answers and bookings. It sees no password and no token.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'heldout_web') THEN
    CREATE ROLE heldout_web LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'heldout_worker') THEN
    CREATE ROLE heldout_worker LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT;
  END IF;
  EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO heldout_web, heldout_worker', current_schema());
  EXECUTE format(
    'REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM PUBLIC, heldout_web, heldout_worker',
    current_schema());
END $$;

-- The server's own tables.
GRANT SELECT ON server_version, server_receipts TO heldout_web, heldout_worker;
GRANT SELECT, INSERT, UPDATE ON server_people, server_tokens TO heldout_web;
GRANT SELECT, INSERT, UPDATE, DELETE ON server_tries TO heldout_web;
GRANT SELECT (name, role, disabled) ON server_people TO heldout_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON server_grants TO heldout_web;
GRANT SELECT ON server_grants TO heldout_worker;
GRANT SELECT, INSERT ON server_log TO heldout_web;
GRANT SELECT, INSERT, UPDATE ON server_datasets TO heldout_web;
GRANT SELECT, INSERT, UPDATE, DELETE ON server_drafts, server_requests TO heldout_web;
GRANT SELECT, UPDATE (state, words, offered, columns) ON server_drafts TO heldout_worker;
GRANT SELECT, UPDATE (state, words, about) ON server_datasets TO heldout_worker;
GRANT SELECT, INSERT ON server_artifacts, server_scorings, server_boards TO heldout_web;
GRANT SELECT, UPDATE ON server_artifacts, server_scorings, server_boards TO heldout_worker;
GRANT UPDATE (name, kind, features, size, sha256, state, words) ON server_artifacts TO heldout_web;
GRANT DELETE ON server_scorings TO heldout_web, heldout_worker;
GRANT SELECT, INSERT ON server_evaluations, server_submissions, server_jobs TO heldout_web;
GRANT SELECT, UPDATE ON server_evaluations, server_submissions TO heldout_worker;
-- Cancelling: the web ends what waits, and never writes an answer, a score or a receipt.
GRANT UPDATE (state, words, visible) ON server_evaluations, server_submissions TO heldout_web;
GRANT UPDATE (after, state, created, owner, seconds) ON server_jobs TO heldout_web;
GRANT SELECT, INSERT, UPDATE ON server_jobs TO heldout_worker;
GRANT INSERT, UPDATE ON server_receipts TO heldout_worker;
GRANT SELECT ON server_workers TO heldout_web;
GRANT SELECT, INSERT, UPDATE, DELETE ON server_workers TO heldout_worker;
GRANT USAGE ON SEQUENCE server_jobs_id_seq TO heldout_web, heldout_worker;
GRANT USAGE ON SEQUENCE server_log_id_seq TO heldout_web, heldout_worker;
-- A worker writes down what it deleted by age, and nothing in anybody's name.
GRANT INSERT ON server_log TO heldout_worker;
ALTER TABLE server_log ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS web_writes ON server_log;
CREATE POLICY web_writes ON server_log TO heldout_web USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS worker_deletes ON server_log;
CREATE POLICY worker_deletes ON server_log FOR INSERT TO heldout_worker
  WITH CHECK (action = 'retention' AND person IS NULL);

-- The web asks, and answers nothing.
ALTER TABLE server_evaluations ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS web_reads ON server_evaluations;
CREATE POLICY web_reads ON server_evaluations FOR SELECT TO heldout_web USING (true);
DROP POLICY IF EXISTS web_asks ON server_evaluations;
CREATE POLICY web_asks ON server_evaluations FOR INSERT TO heldout_web
  WITH CHECK (state = 'waiting' AND coalesce(statement::text, 'null') = 'null');
DROP POLICY IF EXISTS web_cancels ON server_evaluations;
CREATE POLICY web_cancels ON server_evaluations FOR UPDATE TO heldout_web
  USING (state IN ('waiting', 'refused')) WITH CHECK (state = 'cancelled');
DROP POLICY IF EXISTS worker_answers ON server_evaluations;
CREATE POLICY worker_answers ON server_evaluations TO heldout_worker USING (true);
ALTER TABLE server_submissions ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS web_reads ON server_submissions;
CREATE POLICY web_reads ON server_submissions FOR SELECT TO heldout_web USING (true);
DROP POLICY IF EXISTS web_asks ON server_submissions;
CREATE POLICY web_asks ON server_submissions FOR INSERT TO heldout_web
  WITH CHECK (state = 'waiting' AND score IS NULL AND improved IS NULL);
DROP POLICY IF EXISTS web_cancels ON server_submissions;
CREATE POLICY web_cancels ON server_submissions FOR UPDATE TO heldout_web
  USING (state IN ('waiting', 'refused')) WITH CHECK (state = 'cancelled');
DROP POLICY IF EXISTS worker_answers ON server_submissions;
CREATE POLICY worker_answers ON server_submissions TO heldout_worker USING (true);

-- The ledger. Nobody deletes or rewrites an entry. The web writes a custodian's decisions alone.
GRANT SELECT ON heldout_ledger, heldout_accounts, heldout_entries, heldout_ties, heldout_references
  TO heldout_web, heldout_worker;
GRANT UPDATE (sequence, head) ON heldout_ledger TO heldout_web;
GRANT UPDATE (sequence, head, key_check, closed) ON heldout_ledger TO heldout_worker;
GRANT INSERT, UPDATE (state, sequence, head) ON heldout_accounts TO heldout_web, heldout_worker;
GRANT INSERT ON heldout_entries TO heldout_web, heldout_worker;
GRANT INSERT ON heldout_ties, heldout_references TO heldout_worker;
GRANT SELECT, INSERT, DELETE ON heldout_sketches TO heldout_worker;

ALTER TABLE heldout_entries ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everybody_reads ON heldout_entries;
CREATE POLICY everybody_reads ON heldout_entries FOR SELECT TO heldout_web, heldout_worker
  USING (true);
DROP POLICY IF EXISTS web_decides ON heldout_entries;
CREATE POLICY web_decides ON heldout_entries FOR INSERT TO heldout_web
  WITH CHECK (body::json ->> 'kind' IN ('grant', 'raise', 'revocation', 'closing'));
DROP POLICY IF EXISTS worker_books ON heldout_entries;
CREATE POLICY worker_books ON heldout_entries FOR INSERT TO heldout_worker
  WITH CHECK (body::json ->> 'kind' IN ('booking', 'registration', 'counted', 'grant'));
ALTER TABLE heldout_accounts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everybody_reads ON heldout_accounts;
CREATE POLICY everybody_reads ON heldout_accounts FOR SELECT TO heldout_web, heldout_worker
  USING (true);
DROP POLICY IF EXISTS everybody_totals ON heldout_accounts;
CREATE POLICY everybody_totals ON heldout_accounts FOR UPDATE TO heldout_web, heldout_worker
  USING (true);
DROP POLICY IF EXISTS web_grants ON heldout_accounts;
CREATE POLICY web_grants ON heldout_accounts FOR INSERT TO heldout_web
  WITH CHECK (kind = 'analyst');
DROP POLICY IF EXISTS worker_registers ON heldout_accounts;
CREATE POLICY worker_registers ON heldout_accounts FOR INSERT TO heldout_worker
  WITH CHECK (kind IN ('data', 'analyst'));
