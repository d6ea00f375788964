-- name: GetInstallation :one
SELECT * FROM installation;

-- name: BindTemporal :exec
UPDATE installation SET temporal_bound_at = now();

-- name: RenewInstallation :one
-- A copy of a database becomes an installation of its own. No namespace is bound to it.
-- Servers and workers hold advisory locks: a database that they use is no copy.
UPDATE installation SET id = gen_random_uuid(), temporal_bound_at = NULL, alarm = '', alarm_at = NULL
WHERE NOT EXISTS (
	SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
	WHERE l.locktype = 'advisory' AND d.datname = current_database()
)
RETURNING id;

-- name: SetAlarm :execrows
-- Only a change is news.
UPDATE installation SET alarm = @alarm, alarm_at = CASE WHEN @alarm::text <> '' THEN now() END WHERE alarm <> @alarm;

-- name: SetFailingRounds :exec
UPDATE installation SET failing_rounds = CASE WHEN @problem::text = '' THEN failing_rounds - @part::text ELSE failing_rounds || jsonb_build_object(@part, @problem) END
WHERE coalesce(failing_rounds ->> @part, '') <> @problem;

-- name: SetRetentionProblem :exec
UPDATE installation SET retention_problem = @problem WHERE retention_problem <> @problem;
