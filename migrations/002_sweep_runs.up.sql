-- A sweep's workflow learns of the ends of the trials that its current run started from Temporal itself. Those that an
-- earlier run started tell it through the outbox, in the transaction that ends them.
ALTER TABLE sweeps ADD COLUMN run_id text NOT NULL DEFAULT '';

ALTER TABLE outbox DROP CONSTRAINT outbox_kind;
ALTER TABLE outbox ADD CONSTRAINT outbox_kind CHECK (kind IN ('start_sweep', 'placed', 'trial_finished'));
