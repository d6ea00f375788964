package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
)

// Roles are the roles of servers and workers, beside the role that owns and
// migrates the schema.
type Roles struct {
	Server, Worker []string // names; nil = the roles that already have the grants
}

// Grant gives the roles the privileges of this version's processes, takes all
// else from them and from earlier roles, and takes from PUBLIC everything but
// USAGE of the schema, in one transaction. It returns the roles. Without roles
// it does nothing. Errors: invalid for a role that would keep more than its
// grants.
func (m *Migrator) Grant(ctx context.Context, roles Roles) (Roles, error) {
	err := m.session(ctx, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			g := granting{tx: tx}

			var err error
			roles, err = g.run(ctx, roles)

			return translate(err, "granting roles their rights")
		})
	})

	return roles, err
}

// granting is one transaction that grants.
type granting struct {
	tx               pgx.Tx
	database, schema string
	owner            string
	present          []string // the tables, views and sequences that are the owner's
}

func (g *granting) run(ctx context.Context, roles Roles) (Roles, error) {
	err := g.tx.QueryRow(ctx, "SELECT current_database(), current_schema(), current_user").Scan(&g.database, &g.schema, &g.owner)
	if err != nil {
		return roles, err
	}

	if g.present, err = g.queryTexts(ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
		AND pg_has_role(relowner, 'USAGE')`,
		pgx.Identifier{g.schema}.Sanitize()); err != nil || !slices.Contains(g.present, "sweeps") || !slices.Contains(g.present, "shapes") {
		return roles, err
	}

	// Only a server makes sweeps, and only a worker shapes.
	servers, err := g.writers(ctx, "sweeps")
	if err != nil {
		return roles, err
	}

	workers, err := g.writers(ctx, "shapes")
	if err != nil {
		return roles, err
	}

	if roles.Server == nil {
		roles.Server = without(servers, workers)
	}

	if roles.Worker == nil {
		roles.Worker = without(workers, servers)
	}

	all := slices.Concat(roles.Server, roles.Worker)
	if len(all) == 0 {
		return roles, nil
	}

	for _, role := range all {
		if err := g.check(ctx, role, roles); err != nil {
			return roles, err
		}
	}

	if err := g.revoke(ctx, slices.Concat(all, servers, workers)); err != nil {
		return roles, err
	}

	for _, role := range all {
		server := slices.Contains(roles.Server, role)
		if err := g.grant(ctx, role, server); err != nil {
			return roles, err
		}

		if err := g.verify(ctx, role, server); err != nil {
			return roles, err
		}
	}

	return roles, nil
}

// writers returns the roles with INSERT on a table, without its owner.
func (g *granting) writers(ctx context.Context, table string) ([]string, error) {
	return g.queryTexts(ctx, `SELECT r.rolname::text FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
		WHERE c.oid = $1::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> c.relowner ORDER BY 1`, g.name(table))
}

// check refuses a role that no grant can bound.
func (g *granting) check(ctx context.Context, role string, roles Roles) error {
	if slices.Contains(roles.Server, role) && slices.Contains(roles.Worker, role) {
		return berth.Errorf(berth.KindInvalid, "the role %q cannot be a server's and a worker's: give --grant-server and --grant-worker a role each", role)
	}

	var known, super, member bool

	err := g.tx.QueryRow(ctx, `SELECT count(*) > 0, coalesce(bool_or(rolsuper), false), coalesce(bool_or(pg_has_role(oid, current_user, 'MEMBER')), false)
		FROM pg_roles WHERE rolname = $1`, role).Scan(&known, &super, &member)

	switch {
	case err != nil:
		return err
	case !known:
		return berth.Errorf(berth.KindInvalid, "there is no role %q: as an administrator of PostgreSQL run CREATE ROLE %s LOGIN PASSWORD '…'; "+
			"with docker-compose.yml put BERTH_SERVER_DB_PASSWORD and BERTH_WORKER_DB_PASSWORD into .env and run `docker compose up -d --wait postgres`, then "+
			"`docker compose exec -T postgres sh /docker-entrypoint-initdb.d/berth.sh`, which makes the roles with these passwords", role, pgx.Identifier{role}.Sanitize())
	case super:
		return berth.Errorf(berth.KindInvalid, "the role %q is a superuser, whom no grant bounds: give another, or ALTER ROLE %s NOSUPERUSER", role, pgx.Identifier{role}.Sanitize())
	case member:
		return berth.Errorf(berth.KindInvalid, "the role %q is, or is a member of, %q, which owns the schema and may do everything: give another", role, g.owner)
	}

	return nil
}

// revoke takes everything from the roles, and from PUBLIC everything but USAGE of
// the schema: that opens no table, and roles of dashboards live by it. CONNECT goes,
// because a connection needs no other right to take Berth's advisory locks or to
// send its notifications. What PUBLIC has of a schema or a database that another
// role owns stays; verify finds it.
func (g *granting) revoke(ctx context.Context, roles []string) error {
	from := make([]string, len(roles))
	for i, role := range roles {
		from[i] = pgx.Identifier{role}.Sanitize()
	}

	schema, names := pgx.Identifier{g.schema}.Sanitize(), strings.Join(from, ", ")

	what, err := g.queryTexts(ctx, `SELECT 'ROUTINE ' || oid::regprocedure FROM pg_proc WHERE pronamespace = $1::regnamespace AND pg_has_role(proowner, 'USAGE')`, schema)
	if err != nil {
		return err
	}

	what = append(what, "DATABASE "+pgx.Identifier{g.database}.Sanitize())
	for _, relation := range g.present {
		what = append(what, "TABLE "+g.name(relation)) // which PostgreSQL takes for a view and a sequence, too
	}

	statements := []string{"REVOKE CREATE ON SCHEMA " + schema + " FROM PUBLIC", "REVOKE ALL ON SCHEMA " + schema + " FROM " + names}
	for _, what := range what {
		statements = append(statements, "REVOKE ALL ON "+what+" FROM PUBLIC, "+names)
	}

	return g.exec(ctx, statements)
}

// grant gives a role what its process uses.
func (g *granting) grant(ctx context.Context, role string, server bool) error {
	to := " TO " + pgx.Identifier{role}.Sanitize()
	statements := []string{
		"GRANT CONNECT ON DATABASE " + pgx.Identifier{g.database}.Sanitize() + to,
		"GRANT USAGE ON SCHEMA " + pgx.Identifier{g.schema}.Sanitize() + to,
	}

	for _, one := range grants {
		if what := one.privilegesOf(server); what != "" && slices.Contains(g.present, one.name) {
			kind := "TABLE "
			if strings.HasPrefix(what, nextNumber) {
				kind = "SEQUENCE "
			}

			statements = append(statements, "GRANT "+what+" ON "+kind+g.name(one.name)+to)
		}
	}

	return g.exec(ctx, statements)
}

func (g *granting) exec(ctx context.Context, statements []string) error {
	for _, statement := range statements {
		if _, err := g.tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}

	return nil
}

// verify finds rights that a role has besides: from a role that it is a member
// of, or that the owner of the tables cannot take away.
func (g *granting) verify(ctx context.Context, role string, server bool) error {
	var tables, privileges []string

	for _, one := range grants {
		if !slices.Contains(g.present, one.name) || strings.HasPrefix(one.server, nextNumber) {
			continue
		}

		for _, privilege := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"} {
			whole := strings.Contains(one.privilegesOf(server), privilege) && !strings.Contains(one.privilegesOf(server), privilege+" (")
			if !whole {
				tables, privileges = append(tables, g.name(one.name)), append(privileges, privilege)
			}
		}
	}

	extra, err := g.queryTexts(ctx, `SELECT 'CREATE on ' || $2::text WHERE has_schema_privilege($1::name, $2::text, 'CREATE')
		UNION ALL SELECT p || ' on ' || $3::text FROM unnest(ARRAY['CREATE', 'TEMPORARY']) p WHERE has_database_privilege($1::name, $3::text, p)
		UNION ALL SELECT p || ' on ' || t FROM unnest($4::text[], $5::text[]) u (t, p) WHERE has_table_privilege($1::name, t, p)`,
		role, g.schema, g.database, tables, privileges)
	if err != nil || len(extra) == 0 {
		return err
	}

	return berth.Errorf(berth.KindInvalid, "the role %q may do more than its process needs (%s), by a role that it is a member of or by a grant to PUBLIC "+
		"that %q cannot take back: as an administrator of PostgreSQL REVOKE it, or ALTER DATABASE and ALTER SCHEMA … OWNER TO %s, and run this again",
		role, strings.Join(extra, ", "), g.owner, pgx.Identifier{g.owner}.Sanitize())
}

// name is a table's, in this schema.
func (g *granting) name(table string) string { return pgx.Identifier{g.schema, table}.Sanitize() }

func (g *granting) queryTexts(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := g.tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// privilegesOf returns the privileges of one kind of process.
func (g grant) privilegesOf(server bool) string {
	if server {
		return g.server
	}

	return g.worker
}

// without returns the list's entries that are not in the other list.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(others, one) })
}
