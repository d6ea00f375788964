package firewall

import (
	"slices"
	"strings"
)

// table is the table of filters: the rules of each chain, in order, without the chain's
// name. A chain without rules is there with none.
type table map[string][]string

// parse reads what `iptables -S` prints.
func parse(text string) table {
	t := make(table)

	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}

		switch chain := fields[1]; fields[0] {
		case "-P", "-N":
			t[chain] = nil
		case "-A":
			t[chain] = append(t[chain], strings.Join(fields[2:], " "))
		}
	}

	return t
}

// notOurs reports whether a rule is no jump to our chain, from whichever bridge.
func notOurs(rule string) bool { return !strings.HasSuffix(rule, "-j "+Chain) }

// jump is the rule that sends what comes from a bridge through our chain.
func jump(bridge string) string { return "-i " + bridge + " -j " + Chain }

// entrances are the chains that the jump stands in. Docker has DOCKER-USER where it
// manages the protocol by iptables, and keeps it first in FORWARD. A rule before it may
// accept what it never sees: then the jump comes first in FORWARD.
func (t table) entrances() []string {
	first := slices.IndexFunc(t["FORWARD"], notOurs)
	if _, ok := t[dockerUser]; ok && first >= 0 && t["FORWARD"][first] == "-j "+dockerUser {
		return []string{dockerUser, "INPUT"}
	}

	return []string{"FORWARD", "INPUT"}
}

// comesFirst reports whether the jump is in each entrance, behind nothing but jumps of
// other bridges: any other rule before it may accept what it should refuse.
func (t table) comesFirst(bridge string) bool {
	return !slices.ContainsFunc(t.entrances(), func(chain string) bool {
		at := slices.IndexFunc(t[chain], func(rule string) bool {
			return rule == jump(bridge) || notOurs(rule)
		})

		return at < 0 || t[chain][at] != jump(bridge)
	})
}

// script makes the table as it must be, in one step, for iptables-restore without its
// flush of everything else: the chain anew, and one jump in each entrance, first.
func (t table) script(fam family, bridge string) string {
	var b strings.Builder

	b.WriteString("*filter\n:" + Chain + " - [0:0]\n")

	for _, rule := range fam.rules() {
		b.WriteString("-A " + Chain + " " + strings.Join(rule, " ") + "\n")
	}

	for _, chain := range t.entrances() {
		for _, rule := range t[chain] {
			if rule == jump(bridge) {
				b.WriteString("-D " + chain + " " + rule + "\n")
			}
		}

		b.WriteString("-I " + chain + " 1 " + jump(bridge) + "\n")
	}

	b.WriteString("COMMIT\n")

	return b.String()
}
