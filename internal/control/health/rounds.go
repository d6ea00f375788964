package health

// Parts of health that have a loop in the server, which notes how its rounds end.
const (
	PartOutbox    = "outbox"
	PartPlacer    = "placer"
	PartEvents    = "events"
	PartWorkflows = "workflows"
)

// harmOfRounds is the consequence of failing rounds of a part's loop.
func harmOfRounds(part string) string {
	switch part {
	case PartOutbox:
		return "sweeps may not start, and trials learn of their places late"
	case PartPlacer:
		return "some trials may not start, what runs goes on"
	case PartEvents:
		return "pages learn of changes late"
	default:
		return "a sweep that a person ended in Temporal stays open"
	}
}

// markFailingRounds makes a part that is fine else a fault while its rounds fail.
func (h State) markFailingRounds(findings []Finding) []Finding {
	for i, f := range findings {
		if problem := h.FailingRounds[f.Part]; problem != "" && f.OK {
			findings[i] = Finding{
				Part: f.Part, What: "the server's rounds fail " + problem + "; " + harmOfRounds(f.Part),
				Next: "the server tries again by itself; when it lasts, mend what the reason names, see in PostgreSQL's pg_stat_activity and pg_locks what holds the tables, or report the reason",
			}
		}
	}

	return findings
}
