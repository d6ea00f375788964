package runtrial

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/berthml/berth/internal/agent/tfevents"
)

const (
	// mostEntries of a job's directories are looked at for event files, mostDepth deep.
	mostEntries = 20_000
	mostDepth   = 16
	mostWrong   = 3 // files that are named in an attempt's message
)

// find adds the event files that are new. Links are not followed.
func (e *eventFiles) find() {
	left, had := mostEntries, len(e.files)

	for _, at := range e.roots {
		_ = walkBelow(at, func(name string, info fs.FileInfo) error {
			if left--; left < 0 {
				e.many = true

				return errEnough
			}

			if info.Mode().IsRegular() && tfevents.IsEventFile(info.Name()) && strings.Count(name, "/") <= mostDepth {
				e.meet(at, name, info)
			}

			return nil
		})
	}

	if len(e.files) > had {
		slices.SortStableFunc(e.files, older)
	}
}

// meet adds a file unless it is known.
func (e *eventFiles) meet(at, name string, info fs.FileInfo) {
	key := at + "\x00" + name

	switch {
	case e.known[key], !e.isJobs(at, name, info):
		return
	case len(e.files) >= mostEventFiles:
		e.many = true

		return
	}

	f := &eventFile{decoder: tfevents.NewDecoder()}
	f.follower = follower{
		run: e.run, dir: at, name: name, left: &e.left,
		take: func(data []byte) int64 { return e.records(f, data) },
		anew: func() { f.rest, f.decoder = nil, tfevents.NewDecoder() },
	}

	e.known[key] = true
	e.files = append(e.files, f)
}

// records takes in the whole records of what was appended. One that is too long is left out
// unread, and so is all behind a length that is wrong: nobody knows where the next one begins.
func (e *eventFiles) records(f *eventFile, data []byte) (skip int64) {
	const (
		around = tfevents.HeaderBytes + tfevents.FooterBytes
		all    = math.MaxInt64 / 2
	)

	f.rest = append(f.rest, data...)

	for len(f.rest) >= tfevents.HeaderBytes {
		n, ok := tfevents.DataBytes(f.rest[:tfevents.HeaderBytes])
		if !ok {
			e.say(f, "could be read up to byte %d only, where a record has a wrong checksum")

			f.rest = nil

			return all
		}

		whole := int64(min(n, all)) + around
		have := min(whole, int64(len(f.rest)))

		switch {
		case n > longestEvent:
		case have < whole: // it has not all been written
			f.rest = bytes.Clone(f.rest)

			return 0
		default:
			e.record(f, f.rest[:whole])
		}

		f.rest = f.rest[have:]
		if skip = whole - have; skip > 0 {
			return skip
		}
	}

	f.rest = bytes.Clone(f.rest)

	return 0
}

// record takes in a record.
func (e *eventFiles) record(f *eventFile, record []byte) {
	data, footer := record[tfevents.HeaderBytes:len(record)-tfevents.FooterBytes], record[len(record)-tfevents.FooterBytes:]

	if !tfevents.Valid(data, footer) {
		e.say(f, "has a record with a wrong checksum at byte %d, which was left out")

		return
	}

	scalars, err := f.decoder.Scalars(data)
	if err != nil {
		e.say(f, "has a record at byte %d that is no event, which was left out")
	}

	e.take(f, scalars)
}

// say notes what of a file could not be read, from the record at hand on.
func (e *eventFiles) say(f *eventFile, what string) {
	switch {
	case len(e.wrong) < mostWrong:
		e.wrong = append(e.wrong, fmt.Sprintf("its event file %q "+what, e.run.mask.Quote(f.name), f.at-int64(len(f.rest))))
	case len(e.wrong) == mostWrong:
		e.wrong = append(e.wrong, "so have others of its event files")
	}
}
