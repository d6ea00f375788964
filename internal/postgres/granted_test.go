package postgres

// Granted are the names with a decision on the privileges of processes.
func Granted() []string {
	names := make([]string, len(grants))
	for i, one := range grants {
		names[i] = one.name
	}

	return names
}
