package apitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// AddFile gives an attempt a stored file. The state of its files is FileSets'.
func (s *Store) AddFile(attemptID, path, content string) {
	if s.Files == nil {
		s.Files, s.Objects = make(map[string][]berth.Artifact), make(map[berth.Digest]string)
	}

	digest := berth.Digest(sha256.Sum256([]byte(content)))
	s.Objects[digest] = content
	s.Files[attemptID] = append(s.Files[attemptID], berth.Artifact{Path: path, Bytes: int64(len(content)), Digest: digest, StoredAt: Start})
	slices.SortFunc(s.Files[attemptID], func(a, b berth.Artifact) int { return strings.Compare(a.Path, b.Path) })
}

// FindTrial is api.Files.
func (s *Store) FindTrial(_ context.Context, id string) (berth.Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, trial := range s.Trials {
		if trial.ID == id {
			return trial, nil
		}
	}

	return berth.Trial{}, berth.Errorf(berth.KindNotFound, "no trial %s", id)
}

// FileSet is api.Files. Number 0 returns the last attempt's files.
func (s *Store) FileSet(_ context.Context, trialID string, number int) (berth.FileSet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, attempt := range slices.Backward(s.Attempts) {
		if attempt.TrialID != trialID || number > 0 && attempt.Number != number {
			continue
		}

		set, found := s.FileSets[attempt.ID]
		if !found {
			set.State = berth.FilesPending
		}

		set.AttemptID, set.Attempt = attempt.ID, attempt.Number
		for _, f := range s.Files[attempt.ID] {
			set.Files++
			set.Bytes += f.Bytes
		}

		return set, nil
	}

	return berth.FileSet{}, berth.Errorf(berth.KindNotFound, "no attempt")
}

// ListFiles is api.Files.
func (s *Store) ListFiles(_ context.Context, attemptID, after string, limit int) ([]berth.Artifact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var page []berth.Artifact

	for _, f := range s.Files[attemptID] {
		if f.Path > after && len(page) < limit {
			page = append(page, f)
		}
	}

	return page, nil
}

// GetFile is api.Files.
func (s *Store) GetFile(_ context.Context, attemptID, path string) (berth.Artifact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range s.Files[attemptID] {
		if f.Path == path {
			return f, nil
		}
	}

	return berth.Artifact{}, berth.Errorf(berth.KindNotFound, "no file %q", path)
}

// Read is api.Objects. An object that is gone is ObjectErr.
func (s *Store) Read(_ context.Context, d berth.Digest, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.ObjectsRead++

	content, found := s.Objects[d]
	if !found {
		return nil, s.ObjectErr
	}

	content = content[offset:]
	if length >= 0 {
		content = content[:length]
	}

	return io.NopCloser(bytes.NewReader([]byte(content))), nil
}
