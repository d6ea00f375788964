package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// granted is a database whose server and worker have roles of their own.
type granted struct {
	t                                         *testing.T
	owner, server, worker                     string // names
	ownerURL, serverURL, workerURL, superUser string
}

// setupRoles makes three roles, gives one of them a database, migrates and
// grants. The test's own role, a superuser, only makes them.
func setupRoles(t *testing.T) granted {
	t.Helper()

	suffix := strings.ReplaceAll(uuid.NewString()[:8], "-", "")
	g := granted{t: t, owner: "owner_" + suffix, server: "server_" + suffix, worker: "worker_" + suffix, superUser: pgtest.URL(t)}

	database := "roles_" + suffix
	g.exec(g.superUser, "CREATE ROLE "+g.owner+" LOGIN", "CREATE ROLE "+g.server+" LOGIN", "CREATE ROLE "+g.worker+" LOGIN", "CREATE DATABASE "+database+" OWNER "+g.owner)

	as := func(role string) string {
		u, err := url.Parse(g.superUser)
		require.NoError(t, err)

		password, _ := u.User.Password()
		u.Path, u.User = "/"+database, url.UserPassword(role, password)
		g.exec(g.superUser, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", role, password))

		return u.String()
	}
	g.ownerURL, g.serverURL, g.workerURL = as(g.owner), as(g.server), as(g.worker)

	require.NoError(t, postgres.Migrate(t.Context(), g.ownerURL))

	return g
}

// exec runs statements by a connection of its own.
func (g granted) exec(url string, statements ...string) {
	g.t.Helper()
	pgtest.Exec(g.t, url, statements...)
}

func try(ctx context.Context, url, statement string) error { return pgtest.Try(ctx, url, statement) }

func (g granted) grant(roles postgres.Roles) (postgres.Roles, error) {
	g.t.Helper()

	migrator, err := postgres.NewMigrator(g.ownerURL)
	require.NoError(g.t, err)

	return migrator.Grant(g.t.Context(), roles)
}

func (g granted) both() postgres.Roles {
	return postgres.Roles{Server: []string{g.server}, Worker: []string{g.worker}}
}

// refused is PostgreSQL's "permission denied", also among other errors.
func refused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)

	return ok && pg.Code == "42501"
}

func TestGrant_Forbids(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)
	_, err := g.grant(g.both())
	require.NoError(t, err)

	both := []string{
		"CREATE TABLE mine (id int)", "CREATE TEMPORARY TABLE mine (id int)", "CREATE SCHEMA mine", "ALTER TABLE sweeps ADD mine int", "DROP TABLE paces",
		"TRUNCATE metrics", "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE INDEX ON trials (id)", "CREATE ROLE mine",
		"UPDATE schema_version SET version = 1", "DROP TRIGGER hosts_announce ON hosts",
		"UPDATE audit_log SET actor = 'x'", "SELECT pg_read_file('/etc/passwd')", "COPY sweeps TO PROGRAM 'true'",
	}

	for role, c := range map[string]struct {
		url       string
		forbidden []string
		allowed   []string
	}{
		"server": {g.serverURL, append([]string{
			"INSERT INTO metrics (attempt_id) SELECT NULL WHERE false", "UPDATE log_chunks SET data = ''", "DELETE FROM api_tokens", "DELETE FROM hosts",
		}, both...), []string{
			"SELECT * FROM api_tokens", "SELECT * FROM sessions", "SELECT * FROM sweeps FOR UPDATE", "SELECT * FROM class_footprints", "DELETE FROM sweeps",
			"INSERT INTO audit_log (actor, action, object, ip, result) VALUES ('a', 'b', 'c', '', '201')", "SELECT nextval('lease_tokens')", "SELECT nextval('event_sequence')",
			"SELECT setval('event_sequence', 9)",
		}},
		"worker": {g.workerURL, append([]string{
			"SELECT * FROM api_tokens", "INSERT INTO api_tokens DEFAULT VALUES", "UPDATE api_tokens SET role = 'admin'", "DELETE FROM api_tokens",
			"SELECT * FROM sessions", "INSERT INTO sessions DEFAULT VALUES", "DELETE FROM sessions",
			"SELECT * FROM audit_log", "DELETE FROM audit_log", "SELECT * FROM idempotency_keys", "SELECT * FROM image_digests",
			"UPDATE sweeps SET spec = '{}'", "UPDATE sweeps SET name = 'x'", "UPDATE sweeps SET deleted_at = now()", "INSERT INTO sweeps DEFAULT VALUES", "DELETE FROM sweeps",
			"DELETE FROM trials", "DELETE FROM attempts", "INSERT INTO attempts DEFAULT VALUES", "INSERT INTO leases DEFAULT VALUES", "DELETE FROM leases",
			"SELECT * FROM events", "SELECT * FROM outbox", "DELETE FROM outbox", "UPDATE installation SET id = gen_random_uuid()", "SELECT nextval('event_sequence')",
			"SELECT setval('event_sequence', 9)",
		}, both...), []string{
			"SELECT * FROM sweeps FOR SHARE", "UPDATE sweeps SET state = state", "SELECT * FROM class_footprints", "SELECT nextval('lease_tokens')",
			"INSERT INTO audit_log (actor, action, object, ip, result) VALUES ('a', 'b', 'c', '', '201')",
		}},
	} {
		for _, statement := range c.forbidden {
			err := try(t.Context(), c.url, statement)
			require.True(t, refused(err), "%s: %s: %v", role, statement, err)
		}

		for _, statement := range c.allowed {
			require.NoError(t, try(t.Context(), c.url, statement), "%s: %s", role, statement)
		}
	}
}

// A table without a decision fails here: state in grants the privileges of a
// server and a worker, or that they leave it alone.
func TestGrant_NamesEachTable(t *testing.T) {
	t.Parallel()

	rows, err := bare(t).pool.Query(t.Context(), `SELECT relname::text FROM pg_class c
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
			AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i' AND c.relkind = 'S') ORDER BY 1`)
	require.NoError(t, err)

	present, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, present, postgres.Granted())
}

// Each `berth migrate` renews the grants of roles that have them; the flags
// replace them.
func TestGrant_Renews(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)

	roles, err := g.grant(postgres.Roles{})
	require.NoError(t, err)
	require.Empty(t, roles.Server, "no role has grants yet")
	require.NoError(t, try(t.Context(), g.ownerURL, "SELECT 1 FROM sweeps"))

	_, err = g.grant(g.both())
	require.NoError(t, err)
	g.exec(g.ownerURL, "REVOKE SELECT ON trials FROM "+g.worker, "GRANT DELETE ON trials TO "+g.worker)
	require.True(t, refused(try(t.Context(), g.workerURL, "SELECT 1 FROM trials")))

	roles, err = g.grant(postgres.Roles{})
	require.NoError(t, err)
	require.Equal(t, g.both(), roles)
	require.NoError(t, try(t.Context(), g.workerURL, "SELECT 1 FROM trials"))
	require.True(t, refused(try(t.Context(), g.workerURL, "DELETE FROM trials")))

	other := "other_" + g.worker
	g.exec(g.superUser, "CREATE ROLE "+other+" LOGIN")

	roles, err = g.grant(postgres.Roles{Worker: []string{other}})
	require.NoError(t, err)
	require.Equal(t, postgres.Roles{Server: []string{g.server}, Worker: []string{other}}, roles)
	require.True(t, refused(try(t.Context(), g.workerURL, "SELECT 1 FROM trials")), "the earlier worker's role has lost its grants")
}

func TestGrant_RefusesRolesThatNoGrantBounds(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)
	member, super, reader := "member_"+g.owner, "super_"+g.owner, "reader_"+g.owner
	g.exec(g.superUser, "CREATE ROLE "+member+" IN ROLE "+g.owner, "CREATE ROLE "+super+" SUPERUSER", "CREATE ROLE "+reader+" IN ROLE pg_read_all_data")

	for role, says := range map[string]string{
		"nobody_" + g.owner: "there is no role",
		g.owner:             "which owns the schema",
		member:              "which owns the schema",
		super:               "is a superuser",
		g.server:            "cannot be a server's and a worker's",
		reader:              "SELECT on \"public\".\"api_tokens\"",
	} {
		_, err := g.grant(postgres.Roles{Server: []string{g.server}, Worker: []string{role}})
		require.ErrorContains(t, err, says, role)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		require.True(t, refused(try(t.Context(), g.serverURL, "SELECT 1 FROM sweeps")), "nothing was granted")
	}

	// Under the compose file its own script makes the roles, with the passwords of .env.
	const script = "/docker-entrypoint-initdb.d/berth.sh"

	_, err := g.grant(postgres.Roles{Server: []string{"nobody_" + g.owner}})
	require.ErrorContains(t, err, "docker compose exec -T postgres sh "+script)

	compose, err := os.ReadFile("../../../docker-compose.yml")
	require.NoError(t, err)
	require.Contains(t, string(compose), script)
}

// `berth doctor` asks by the role of its machine's server or worker. A server of a newer
// version says what to do, and goes on once it is done.
func TestGrant_EachRoleSeesHealth(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)
	_, err := g.grant(g.both())
	require.NoError(t, err)
	g.exec(g.ownerURL, "INSERT INTO outbox (kind, workflow_id, payload, last_error) VALUES ('placed', 'trial-1', '{}', 'no answer')")

	server := open(t, g.serverURL)

	for _, store := range []*postgres.Store{server, open(t, g.workerURL)} {
		health, err := store.Health(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, health.OutboxWaiting)
		require.Equal(t, "no answer", health.OutboxReason)
	}

	g.exec(g.ownerURL, "REVOKE SELECT ON sweeps FROM "+g.server)

	_, err = server.GetSweep(t.Context(), uuid.NewString())
	require.ErrorContains(t, err, "run `berth migrate` again as the schema's owner, with --grant-server and --grant-worker")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "waiting mends it")
	require.ErrorContains(t, postgres.Migrate(t.Context(), g.serverURL), "may not change the schema: give --postgres-url the role that owns the database")
}

// Other roles, such as a dashboard's, need only CONNECT again.
func TestGrant_LeavesOtherRolesTheirTables(t *testing.T) {
	t.Parallel()

	g := setupRoles(t)
	dashboard := "dashboard_" + g.owner
	u, err := url.Parse(g.workerURL)
	require.NoError(t, err)

	password, _ := u.User.Password()
	g.exec(g.superUser, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", dashboard, password))
	g.exec(g.ownerURL, "GRANT SELECT ON trials, class_footprints TO "+dashboard)

	u.User = url.UserPassword(dashboard, password)

	const looks = "SELECT 1 FROM trials, class_footprints"

	require.NoError(t, try(t.Context(), u.String(), looks))

	_, err = g.grant(g.both())
	require.NoError(t, err)
	require.True(t, refused(try(t.Context(), u.String(), "SELECT 1")), "it may not connect")

	g.exec(g.ownerURL, "GRANT CONNECT ON DATABASE "+strings.TrimPrefix(u.Path, "/")+" TO "+dashboard)

	for range 2 {
		require.NoError(t, try(t.Context(), u.String(), looks))

		for _, statement := range []string{
			"SELECT 1 FROM sweeps", "SELECT 1 FROM api_tokens", "CREATE TABLE mine (id int)", "CREATE TEMPORARY TABLE mine (id int)", "SELECT nextval('lease_tokens')",
		} {
			require.True(t, refused(try(t.Context(), u.String(), statement)), statement)
		}

		_, err = g.grant(postgres.Roles{}) // renewed, it leaves the role its CONNECT
		require.NoError(t, err)
	}
}
