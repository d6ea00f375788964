package postgres

// Granted are the names for which it is decided what processes may do with them.
func Granted() []string {
	names := make([]string, len(grants))
	for i, one := range grants {
		names[i] = one.name
	}

	return names
}
