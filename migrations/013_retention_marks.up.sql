-- A host says what a person must do about its files: removals that fail, and a limit that cannot be kept. A limit marks a
-- sweep with why its logs or metrics go, before the first row goes; purged is when none was left.
ALTER TABLE hosts ADD outputs_problem text NOT NULL DEFAULT '';

ALTER TABLE sweeps
    ADD logs_removed_why text NOT NULL DEFAULT '',
    ADD logs_purged_at timestamptz,
    ADD metrics_removed_why text NOT NULL DEFAULT '',
    ADD metrics_purged_at timestamptz;

-- Until now a sweep was marked when none was left.
UPDATE sweeps SET logs_removed_why = 'a limit of the server removed them (--keep-logs or --keep-log-bytes)', logs_purged_at = logs_removed_at
WHERE logs_removed_at IS NOT NULL;
UPDATE sweeps SET metrics_removed_why = 'a limit of the server removed them (--keep-metrics or --keep-metric-points)', metrics_purged_at = metrics_removed_at
WHERE metrics_removed_at IS NOT NULL;

-- Before schema 12 only the sweep said that its files were removed.
UPDATE attempts a SET outputs_removed_at = s.outputs_removed_at,
    outputs_removed_why = 'files are kept for a limited time after the end of their sweep (--keep-outputs)'
FROM trials t JOIN sweeps s ON s.id = t.sweep_id
WHERE t.id = a.trial_id AND s.outputs_removed_at IS NOT NULL AND a.outputs_removed_at IS NULL;

CREATE INDEX sweeps_logs_to_purge ON sweeps (logs_removed_at) WHERE logs_removed_at IS NOT NULL AND logs_purged_at IS NULL;
CREATE INDEX sweeps_metrics_to_purge ON sweeps (metrics_removed_at) WHERE metrics_removed_at IS NOT NULL AND metrics_purged_at IS NULL;
