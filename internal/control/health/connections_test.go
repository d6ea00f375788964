package health_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/control/health"
)

func TestHealth_WarnsBeforeConnectionsRunOut(t *testing.T) {
	t.Parallel()

	finding := func(use ...health.ConnectionUse) health.Finding {
		return finding(health.State{Connections: use}, "connections")
	}

	require.True(t, finding().OK)

	f := finding(health.ConnectionUse{Used: 77, Limit: 97}, health.ConnectionUse{Role: "w", Used: 3, Limit: 4})
	require.True(t, f.OK && !f.Warn, "%+v", f)
	require.Equal(t, `77 of the 97 connections that PostgreSQL takes are in use; 3 of the 4 connections of the role "w" are in use`, f.What)

	f = finding(health.ConnectionUse{Used: 78, Limit: 97}, health.ConnectionUse{Role: `w"x`, Used: 3, Limit: 40})
	require.True(t, f.OK && f.Warn)
	require.Equal(t, "78 of the 97 connections that PostgreSQL takes are in use", f.What)
	require.Contains(t, f.Next, "ALTER SYSTEM SET max_connections = 200")
	require.NotContains(t, f.Next, "ALTER ROLE")
	require.Contains(t, f.Next, "a worker takes up to 6 connections and a server up to 17")

	f = finding(health.ConnectionUse{Used: 78, Limit: 97, Fixed: true})
	require.NotContains(t, f.Next, "SET max_connections")
	require.Contains(t, f.Next, "-c max_connections=200 on its command line")
	require.Contains(t, f.Next, "BERTH_POSTGRES_CONNECTIONS=200 in .env")

	f = finding(health.ConnectionUse{Role: `w"x`, Used: 40, Limit: 40})
	require.Contains(t, f.Next, `ALTER ROLE "w""x" CONNECTION LIMIT 80`)
}
