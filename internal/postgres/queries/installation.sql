-- name: GetInstallation :one
SELECT * FROM installation;

-- name: BindTemporal :exec
UPDATE installation SET temporal_bound_at = now();

-- name: SetAlarm :execrows
-- Only a change is news.
UPDATE installation SET alarm = @alarm, alarm_at = CASE WHEN @alarm::text <> '' THEN now() END WHERE alarm <> @alarm;

-- name: SetRetentionProblem :exec
UPDATE installation SET retention_problem = @problem WHERE retention_problem <> @problem;
