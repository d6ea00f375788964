//go:build integration && compose

package e2e

import (
	"crypto/rand"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// previousImage is what `scripts/compose-images --previous` makes.
const previousImage = "berth-local/berth:previous"

// The version before this one runs a sweep when its image is replaced, and this
// one runs another when server and worker get roles of their own and the owners
// other passwords, by the commands of production.md: every trial succeeds, by its
// first attempt.
func TestCompose_Upgrade(t *testing.T) { //nolint:paralleltest // it takes the machine
	blocks := shellBlocks(t, "Upgrades", 2) // the second takes the schema back
	d := newServer(t, "upgraded")
	next := d.settings["BERTH_IMAGE"]
	d.settings["BERTH_IMAGE"] = previousImage
	roles := map[string]string{}

	for _, password := range []string{serverPassword, workerPassword} {
		roles[password] = d.settings[password]
		delete(d.settings, password)
	}

	d.write()
	d.sh("docker compose up -d")
	d.enter()
	require.Eventually(t, func() bool {
		hosts, err := d.api.ListHostsWithResponse(t.Context())

		return err == nil && hosts.JSON200 != nil && len(hosts.JSON200.Data) == 1
	}, startTimeout, tick)
	require.Equal(t, []string{"berth"}, d.databaseUsers())

	done := d.submit(busy(2, 200, core))
	d.requireOnce(done, 2)

	d.adopts(func() {
		d.settings["BERTH_IMAGE"] = next
		d.write()

		const migrate = "docker compose run --rm migrate\n"
		require.True(t, strings.HasPrefix(blocks[0], migrate))

		_, err := d.try(strings.Replace(migrate, "--rm", "--rm --env BERTH_GRANT_SERVER=nobody", 1))
		require.Error(t, err)
		require.Subset(t, strings.Fields(d.sh("docker compose ps --status running --services")), []string{"server", "worker"},
			"a migration that fails changes nothing")

		d.sh(blocks[0])
	})
	require.Equal(t, []string{"berth"}, d.databaseUsers())

	for _, password := range []string{"BERTH_DB_PASSWORD", "TEMPORAL_DB_PASSWORD"} {
		roles[password] = rand.Text()
	}

	d.adopts(func() {
		maps.Copy(d.settings, roles)
		d.write()
		d.sh(shellBlocks(t, "Database roles", 1)[0])
	})
	d.requireRoles()
	d.requireNoRefusal()

	require.Equal(t, 2, d.sweep(done).Counts.Succeeded)
	require.Equal(t, client.SweepStateSucceeded, d.until(d.submit(busy(2, 200, core)), time.Minute, ended).State)
}

// adopts changes the deployment while two trials of a sweep run: their containers
// go on, and each of its trials succeeds by its first attempt.
func (d *deployment) adopts(change func()) {
	d.t.Helper()

	id := d.submit(busy(6, 15_000, core))
	d.until(id, time.Minute, running(2))
	before := d.twoRunning()

	change()
	d.untilReady()
	d.untilHosts(1) // with the token of before
	d.requireOnce(id, 6)

	ran := map[string]bool{}
	for _, a := range d.attempts(id) {
		ran[a.ContainerID] = true
	}

	for _, c := range before {
		require.True(d.t, ran[c.id], "container %s was not adopted", c.name)
	}
}
