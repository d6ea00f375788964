//go:build integration && compose

package e2e

import (
	"crypto/rand"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// A server whose processes are the database's owner gets roles of their own, and the
// owners other passwords, by the commands of production.md while a sweep runs: every
// trial succeeds, by its first attempt.
func TestCompose_RolesJoin(t *testing.T) { //nolint:paralleltest // it takes the machine
	d := newServer(t, "roles")
	roles := map[string]string{}

	for _, password := range []string{serverPassword, workerPassword} {
		roles[password] = d.settings[password]
		delete(d.settings, password)
	}

	for _, password := range []string{"BERTH_DB_PASSWORD", "TEMPORAL_DB_PASSWORD"} {
		roles[password] = rand.Text()
	}

	d.write()
	d.sh("docker compose up -d")
	d.enter()
	d.untilHosts(1)
	require.Equal(t, []string{"berth"}, d.databaseUsers())

	d.adopts(func() {
		maps.Copy(d.settings, roles)
		d.write()
		d.sh(shellBlocks(t, "Database roles", 1)[0])
	})
	d.requireRoles()
	d.requireNoRefusal()
	require.Equal(t, client.SweepStateSucceeded, d.until(d.submit(busy(2, 200, core)), time.Minute, ended).State)
}

// adopts changes the deployment while two trials of a sweep run: their containers
// continue, and each trial of the sweep succeeds by its first attempt.
func (d *deployment) adopts(change func()) {
	d.t.Helper()

	id := d.submit(busy(6, 15_000, core))
	d.until(id, time.Minute, running(2))
	before := d.twoRunning(id)

	change()
	d.untilReady()
	d.untilHosts(1) // with the earlier token
	d.requireOnce(id, 6)

	ran := map[string]bool{}
	for _, a := range d.attempts(id) {
		ran[a.ContainerID] = true
	}

	for _, c := range before {
		require.True(d.t, ran[c.id], "container %s was not adopted", c.name)
	}
}
