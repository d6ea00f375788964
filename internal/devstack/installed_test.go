package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// machineWith is a folder tree with the programs of these versions, by folder.
func machineWith(t *testing.T, versions map[string]string) (root string, patterns []string) {
	t.Helper()

	root = t.TempDir()

	for folder, version := range versions {
		bin := filepath.Join(root, folder, "bin")
		require.NoError(t, os.MkdirAll(bin, 0o755)) //nolint:gosec // G301: programs

		for _, program := range []string{"postgres", "initdb", "pg_isready", "createdb"} {
			script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", program, version)
			require.NoError(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755)) //nolint:gosec // G306: a program
		}
	}

	return root, []string{filepath.Join(root, "*", "bin")}
}

// dataOf is a data directory that this version made; none when it is empty.
func dataOf(t *testing.T, version string) string {
	t.Helper()

	data := filepath.Join(t.TempDir(), "data")
	if version != "" {
		require.NoError(t, os.Mkdir(data, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(version+"\n"), 0o600))
	}

	return data
}

func TestFindPostgres(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin") // of this machine nothing that serves

	for name, test := range map[string]struct {
		installed map[string]string // version by folder
		data      string
		want      string // folder
		says      []string
	}{
		"the newest, by number": {map[string]string{"9.6": "9.6.24", "10": "10.23", "16": "16.2 (Debian 16.2-1.pgdg120+2)", "14": "14.11"}, "", "16", nil},
		"a beta":                {map[string]string{"17": "17.1", "18": "18beta1"}, "", "18", nil},
		"that of the data":      {map[string]string{"14": "14.11", "16": "16.2"}, "14", "14", nil},
		"the data's is gone": {map[string]string{"16": "16.2"}, "15", "", []string{
			"is of PostgreSQL 15, which is not installed, ", "apt-get install postgresql-15`, or move the data by pg_upgrade",
		}},
		"the data is of a newer one": {map[string]string{"14": "14.1"}, "16", "", []string{"apt-get install postgresql-16"}},
		"the data is too old":        {map[string]string{"13": "13.14", "16": "16.2"}, "13", "", []string{"of PostgreSQL 13, which is not installed, or older than 14", "pg_upgrade"}},
		"all are too old":            {map[string]string{"13": "13.14", "9.6": "9.6.24"}, "", "", []string{"no server of PostgreSQL 14 or newer is installed"}},
		"none":                       {nil, "", "", []string{"no server of PostgreSQL 14 or newer is installed", "apt-get install postgresql`"}},
		"none, and there is data":    {nil, "15", "", []string{"apt-get install postgresql-15"}},
		"no version":                 {map[string]string{"16": "16.2"}, "odd", "", []string{`PG_VERSION holds "odd\n", which is no version`}},
	} {
		root, patterns := machineWith(t, test.installed)
		found, err := findPostgres(t.Context(), patterns, dataOf(t, test.data))

		if test.want != "" {
			require.NoError(t, err, name)
			require.Equal(t, filepath.Join(root, test.want, "bin"), found.bin, name)

			continue
		}

		for _, words := range test.says {
			require.ErrorContains(t, err, words, name)
		}

		require.NotEqual(t, berth.KindInternal, berth.KindOf(err), name)
	}
}

// A client's package has some of the programs, and a broken one has no version. Of two programs
// with one version FindPostgres takes the one on PATH, but not before a newer one or the data's.
func TestFindPostgres_ChoosesAmongServers(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin")

	root, patterns := machineWith(t, map[string]string{"15": "15.1", "16": "16.2", "17": "17.1"})
	require.NoError(t, os.Remove(filepath.Join(root, "16", "bin", "postgres")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "17", "bin", "postgres"), []byte("#!/bin/sh\nexit 1\n"), 0o755)) //nolint:gosec // G306: a program

	finds := func(version, want string) {
		found, err := findPostgres(t.Context(), patterns, dataOf(t, version))
		require.NoError(t, err)
		require.Equal(t, want, found.bin)
	}
	finds("", filepath.Join(root, "15", "bin"))

	own, _ := machineWith(t, map[string]string{"mine": "15.9"})
	t.Setenv("PATH", filepath.Join(own, "mine", "bin")+":/usr/bin:/bin")
	finds("", filepath.Join(own, "mine", "bin"))

	root, patterns = machineWith(t, map[string]string{"15": "15.1", "16": "16.2"})
	finds("16", filepath.Join(root, "16", "bin"))
}
