package apitest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// ListMetrics is api.Records.
func (s *Store) ListMetrics(_ context.Context, attemptID, name string, limit int) ([]berth.MetricPoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return take(s.Metrics[attemptID], limit, func(m berth.MetricPoint) bool { return name == "" || m.Name == name }), nil
}

// ListMemory is api.Records.
func (s *Store) ListMemory(_ context.Context, attemptID string) ([]berth.MemoryPoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.Memory[attemptID]), nil
}

// ReadLog is api.Records.
func (s *Store) ReadLog(_ context.Context, attemptID string, offset int64, limit int) ([]berth.LogPiece, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return take(s.Logs[attemptID], limit, func(p berth.LogPiece) bool { return p.Offset+int64(len(p.Data)) > offset }), nil
}

// Write appends to the log of an attempt.
func (s *Store) Write(attemptID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.Logs == nil {
		s.Logs = make(map[string][]berth.LogPiece)
	}

	offset := int64(0)
	if pieces := s.Logs[attemptID]; len(pieces) > 0 {
		last := pieces[len(pieces)-1]
		offset = last.Offset + int64(len(last.Data))
	}

	s.Logs[attemptID] = append(s.Logs[attemptID], berth.LogPiece{Offset: offset, Stream: berth.Stdout, At: Start, Data: []byte(text)})
}

// ListFootprints is api.Records.
func (s *Store) ListFootprints(_ context.Context, after string, limit int) ([]berth.ProbedShape, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return take(s.Probes, limit, func(p berth.ProbedShape) bool { return p.Key > after }), nil
}

// FindFootprint is api.Records.
func (s *Store) FindFootprint(_ context.Context, prefix string) (berth.ProbedShape, error) {
	return find(s, s.Probes, "footprint", func(p berth.ProbedShape) bool { return strings.HasPrefix(p.Key, prefix) })
}

// RecentUsage is api.Records.
func (s *Store) RecentUsage(context.Context, string) ([]berth.RecentUsage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return append([]berth.RecentUsage(nil), s.Recent...), nil
}

// TrialTimes is api.Trials.
func (s *Store) TrialTimes(context.Context, string) (berth.TrialTimes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.Times, nil
}

// Footprints is api.Records.
func (s *Store) Footprints(_ context.Context, shapeKeys []string) (map[string]berth.Footprints, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	known := make(map[string]berth.Footprints)

	for _, p := range s.Probes {
		if wanted(shapeKeys, p.Key) {
			known[p.Key] = berth.Footprints{}
			for _, f := range p.Footprints {
				known[p.Key][f.Class] = f
			}
		}
	}

	return known, nil
}

// ForgetFootprint is api.Records.
func (s *Store) ForgetFootprint(_ context.Context, shapeKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.Probes = take(s.Probes, len(s.Probes), func(p berth.ProbedShape) bool { return p.Key != shapeKey })

	return nil
}

// ListHosts is api.Hosts.
func (s *Store) ListHosts(context.Context) ([]berth.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return append([]berth.Host(nil), s.Hosts...), nil
}

// SetHostState is api.Hosts.
func (s *Store) SetHostState(_ context.Context, hostID string, state berth.HostState) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range s.Hosts {
		if s.Hosts[i].ID == hostID {
			s.Hosts[i].State = state
		}
	}

	return nil
}

// GetDevice is api.Hosts.
func (s *Store) GetDevice(_ context.Context, id string) (device berth.Device, err error) {
	err = s.device(id, func(d *berth.Device) { device = *d })

	return device, err
}

// CordonDevice is api.Hosts.
func (s *Store) CordonDevice(_ context.Context, id, reason string) error {
	return s.device(id, func(d *berth.Device) { d.CordonedAt, d.CordonReason = new(time.Unix(1e9, 0).UTC()), reason })
}

// ReadyDevice is api.Hosts.
func (s *Store) ReadyDevice(_ context.Context, id string) error {
	return s.device(id, func(d *berth.Device) { d.CordonedAt, d.CordonReason = nil, "" })
}

func (s *Store) device(id string, change func(d *berth.Device)) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, h := range append([]berth.Host{{Devices: s.Former}}, s.Hosts...) {
		devices := h.Devices
		if i := slices.IndexFunc(devices, func(d berth.Device) bool { return d.ID == id }); i >= 0 {
			change(&devices[i])

			return nil
		}
	}

	return berth.Errorf(berth.KindNotFound, "no GPU %s", id)
}

// RemoveHost is api.Hosts.
func (s *Store) RemoveHost(_ context.Context, hostID string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	i := slices.IndexFunc(s.Hosts, func(h berth.Host) bool { return h.ID == hostID })
	if s.Hosts[i].State != berth.HostLost && !force {
		return berth.Errorf(berth.KindConflict, "removing host %s: its worker answers", hostID)
	}

	s.Hosts = slices.Delete(s.Hosts, i, i+1)

	return nil
}

// ListEvents is api.Events.
func (s *Store) ListEvents(_ context.Context, after int64, sweepIDs []string, limit int) ([]berth.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(sweepIDs) > 0 {
		s.Filtered++
	}

	return take(s.Events, limit, func(e berth.Event) bool {
		return e.Sequence > after && (len(sweepIDs) == 0 || slices.Contains(sweepIDs, e.SweepID))
	}), nil
}

// EventRange is api.Events.
func (s *Store) EventRange(context.Context) (first, last int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.Events) == 0 {
		return 0, 0, nil
	}

	return s.Events[0].Sequence, s.Events[len(s.Events)-1].Sequence, nil
}

// ListenPublished is api.Events.
func (s *Store) ListenPublished(ctx context.Context, _ time.Duration, wake func()) error {
	if s.Deaf != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Deaf:
		}
	}

	for {
		s.mu.Lock()
		if s.wake == nil {
			s.wake = make(chan struct{})
		}

		published := s.wake
		s.mu.Unlock()

		wake()

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-published:
		}
	}
}

// CreateToken is api.Access.
func (s *Store) CreateToken(_ context.Context, t berth.Token, life time.Duration, hash []byte) (berth.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if life != 0 {
		t.ExpiresAt = new(time.Now().Add(life))
	}

	t.ID, t.CreatedAt, t.Valid = NewID(1000+len(s.Tokens)), Start, valid(t)
	s.Tokens = append(s.Tokens, t)

	if s.hashes == nil {
		s.hashes = make(map[string]string)
	}

	s.hashes[string(hash)] = t.ID

	return t, nil
}

// TokenByHash is api.Access.
func (s *Store) TokenByHash(_ context.Context, hash []byte) (berth.Token, error) {
	s.mu.Lock()
	id := s.hashes[string(hash)]
	s.mu.Unlock()

	token, err := find(s, s.Tokens, "token", func(t berth.Token) bool { return t.ID == id })
	token.Valid = valid(token)

	return token, err
}

func valid(t berth.Token) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || t.ExpiresAt.After(time.Now()))
}

// ListTokens is api.Access.
func (s *Store) ListTokens(context.Context) ([]berth.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return append([]berth.Token(nil), s.Tokens...), nil
}

// RevokeToken is api.Access.
func (s *Store) RevokeToken(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range s.Tokens {
		if s.Tokens[i].ID == id {
			s.Tokens[i].RevokedAt, s.Tokens[i].Valid = &Start, false
		}
	}

	return nil
}

// CountTokens is api.Access.
func (s *Store) CountTokens(context.Context) (berth.TokenCount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return berth.TokenCount{Made: len(s.Tokens), Valid: len(take(s.Tokens, len(s.Tokens), valid))}, s.Down
}

// Audit is api.Access.
func (s *Store) Audit(_ context.Context, e berth.AuditEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.Audits = append(s.Audits, e)

	return nil
}
