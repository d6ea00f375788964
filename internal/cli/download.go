package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

// downloaded is the result of a download.
type downloaded struct {
	Dir     string `json:"dir"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	There   int    `json:"there"` // of the files, those already there with the right checksum
	LeftOut int    `json:"left_out"`
}

func (o *options) downloadCommand() *cobra.Command {
	var (
		wanted int
		dir    string
	)

	cmd := o.verb("download SWEEP NUMBER [PATH...]", "Download the files of a trial: all, or these files and directories", cobra.MinimumNArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			trial, err := to.trial(cmd.Context(), args)
			if err != nil {
				return err
			}

			return o.download(cmd, to, trial, wanted, args[2:], dir)
		})
	cmd.Flags().IntVar(&wanted, "attempt", 0, "which attempt; default: the one that counts")
	cmd.Flags().StringVar(&dir, "to", "", "directory, which is made; default: sweep-ID-trial-NUMBER here")
	_ = cmd.MarkFlagDirname("to")

	return o.completeSweep(cmd)
}

// download writes files of a trial below a directory and reports what it did. Errors:
// not_found, after all stored files were written, when requested files were lost
// before they were stored. It only reports files that a limit or their kind left out
// on purpose.
func (o *options) download(cmd *cobra.Command, to *remote, trial client.Trial, attempt int, paths []string, dir string) error {
	set, err := o.settledFiles(cmd, to, trial.ID, attempt)
	if err != nil {
		return err
	}

	files, err := choose(set, paths)
	if err != nil {
		return err
	}

	sayFiles(cmd, set)

	if dir == "" {
		dir = fmt.Sprintf("sweep-%s-trial-%d", short(trial.SweepID), trial.Number)
	}

	target, err := openTarget(dir)
	if err != nil {
		return err
	}
	defer target.close()

	result := downloaded{Dir: dir, Trial: trial.Number, Attempt: set.Attempt, LeftOut: set.LeftOut}

	for _, f := range files {
		there, err := target.fetch(cmd.Context(), to, fetch{trial: trial.ID, attempt: set.Attempt, file: f})
		if err != nil {
			return err
		}

		result.Files++
		result.Bytes += f.Bytes

		if there {
			result.There++
		}
	}

	if err := o.print(cmd.OutOrStdout(), result, func() table { return downloadTable(result) }); err != nil {
		return err
	}

	if set.State == client.FileStateLost && !allNamed(set, paths) {
		return exitf(ExitNotFound, "not all files of attempt %d are there: the others are %s", set.Attempt, filesText(set))
	}

	return nil
}

// allNamed reports whether each path is a stored file itself. A directory may
// have lost files that the list does not name.
func allNamed(set client.FileList, paths []string) bool {
	for _, p := range paths {
		if !slices.ContainsFunc(set.Data, func(f client.File) bool { return f.Path == p || f.Path == inOut(p) }) {
			return false
		}
	}

	return len(paths) > 0
}

// inOut is a path below /trial/out as the store has it.
func inOut(p string) string {
	return path.Clean(strings.TrimPrefix(filepath.ToSlash(p), "/trial/out/"))
}

// settledFiles reads the stored files of an attempt. It waits for files that are being
// stored, unless the store reports that it cannot store them.
func (o *options) settledFiles(cmd *cobra.Command, to *remote, trialID string, attempt int) (client.FileList, error) {
	const look = 200 * time.Millisecond

	for end, told := time.Now().Add(o.storing), false; ; {
		set, err := to.files(cmd.Context(), trialID, attempt)
		if err != nil || set.State != client.FileStatePending || set.Problem != "" || time.Now().After(end) {
			return set, err
		}

		if !told {
			told = true
			say(cmd.ErrOrStderr(), "waiting for the files of attempt %d, which are being stored\n", set.Attempt)
		}

		select {
		case <-cmd.Context().Done():
			return set, exitf(ExitInterrupt, "interrupted")
		case <-time.After(look):
		}
	}
}

func downloadTable(d downloaded) table {
	var t table

	t.add("directory", pathText(d.Dir))
	t.add("files", plural(d.Files, "file", "files")+", "+bytesText(d.Bytes))

	if d.There > 0 {
		t.add("there already", plural(d.There, "file", "files"))
	}

	if d.LeftOut > 0 {
		t.add("not stored", plural(d.LeftOut, "file", "files"))
	}

	return t
}

// choose returns the files that are named, by themselves or by a directory above
// them; all when none is. Errors: of files that are not there.
func choose(set client.FileList, paths []string) ([]client.File, error) {
	switch set.State {
	case client.FileStateStored, client.FileStateLost: // some may have been stored before the others were lost
	default:
		return nil, exitf(ExitConflict, "no files of attempt %d to download: %s", set.Attempt, filesText(set))
	}

	if len(set.Data) == 0 {
		return nil, exitf(ExitNotFound, "no files of attempt %d to download: %s", set.Attempt, nothingText(set))
	}

	if len(paths) == 0 {
		return set.Data, nil
	}

	chosen := make(map[string]bool)

	for _, p := range paths {
		found := false
		wanted := inOut(p)

		for _, f := range set.Data {
			if f.Path == p || f.Path == wanted || strings.HasPrefix(f.Path, wanted+"/") {
				chosen[f.Path], found = true, true
			}
		}

		if !found {
			return nil, exitf(ExitNotFound, "attempt %d has no stored file %q; `berth trial files` lists them", set.Attempt, p)
		}
	}

	return slices.DeleteFunc(slices.Clone(set.Data), func(f client.File) bool { return !chosen[f.Path] }), nil
}

func nothingText(set client.FileList) string {
	if set.State == client.FileStateStored {
		return "it wrote none to /trial/out that could be stored"
	}

	return filesText(set)
}
