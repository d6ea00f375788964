package firewall

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// docker is what `iptables -S` prints on a machine with Docker.
const docker = `-P INPUT ACCEPT
-P FORWARD DROP
-N DOCKER-USER
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -j DOCKER
`

func TestTable_WhereTheJumpStands(t *testing.T) {
	t.Parallel()

	forward := "-P INPUT ACCEPT\n-P FORWARD DROP\n-N DOCKER-USER\n"
	ours := "-A INPUT -i berth0 -j BERTH-METADATA\n-A DOCKER-USER -i berth0 -j BERTH-METADATA\n"

	for name, c := range map[string]struct {
		table     string
		entrances []string
		first     bool
	}{
		"no rules":                {docker, []string{"DOCKER-USER", "INPUT"}, false},
		"ours":                    {docker + ours + "-A DOCKER-USER -j RETURN\n", []string{"DOCKER-USER", "INPUT"}, true},
		"one before":              {docker + "-A DOCKER-USER -j RETURN\n" + ours, []string{"DOCKER-USER", "INPUT"}, false},
		"another bridge's before": {docker + "-A INPUT -i berth1 -j BERTH-METADATA\n" + ours, []string{"DOCKER-USER", "INPUT"}, true},
		"another bridge's only":   {docker + "-A INPUT -i berth1 -j BERTH-METADATA\n", []string{"DOCKER-USER", "INPUT"}, false},
		"in one chain only":       {docker + "-A DOCKER-USER -i berth0 -j BERTH-METADATA\n", []string{"DOCKER-USER", "INPUT"}, false},
		"Docker changes nothing":  {"-P INPUT ACCEPT\n-P FORWARD ACCEPT\n", []string{"FORWARD", "INPUT"}, false},
		"FORWARD was flushed":     {"-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-N DOCKER-USER\n" + ours, []string{"FORWARD", "INPUT"}, false},
		"one before Docker's":     {forward + "-A FORWARD -j ACCEPT\n-A FORWARD -j DOCKER-USER\n" + ours, []string{"FORWARD", "INPUT"}, false},
		"ours before that one":    {forward + "-A FORWARD -i berth0 -j BERTH-METADATA\n-A FORWARD -j ACCEPT\n-A FORWARD -j DOCKER-USER\n" + ours, []string{"FORWARD", "INPUT"}, true},
		"ours before Docker's":    {forward + "-A FORWARD -i berth0 -j BERTH-METADATA\n-A FORWARD -j DOCKER-USER\n" + ours, []string{"DOCKER-USER", "INPUT"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			now := parse(c.table)
			require.Equal(t, c.entrances, now.entrances())
			require.Equal(t, c.first, now.comesFirst("berth0"))
		})
	}
}

// A script leaves one jump in each chain, however many there were.
func TestTable_Script(t *testing.T) {
	t.Parallel()

	now := parse(docker + "-A INPUT -i eth0 -j ACCEPT\n-A INPUT -i berth0 -j BERTH-METADATA\n-A INPUT -i berth0 -j BERTH-METADATA\n")
	require.Equal(t, `*filter
:BERTH-METADATA - [0:0]
-A BERTH-METADATA -p tcp -d 192.0.2.1 ! --dport 53 -j REJECT --reject-with tcp-reset
-A BERTH-METADATA -p tcp -m conntrack --ctorigdst 192.0.2.1 ! --ctorigdstport 53 -j REJECT
-I DOCKER-USER 1 -i berth0 -j BERTH-METADATA
-D INPUT -i berth0 -j BERTH-METADATA
-D INPUT -i berth0 -j BERTH-METADATA
-I INPUT 1 -i berth0 -j BERTH-METADATA
COMMIT
`, now.script(family{"iptables", []string{"192.0.2.1"}}, "berth0"))
}
