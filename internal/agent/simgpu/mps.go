package simgpu

import (
	"context"
	"net"
	"path/filepath"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/mps"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

// Start lets programs reach a card by MPS.
func (s *Simulator) Start(ctx context.Context, uuid string) error {
	p, err := s.ask(ctx, "starting simulated MPS", uuid)
	if err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shared == nil {
		//nolint:contextcheck // programs stay longer than the caller
		p.shared, err = s.listen(p, filepath.Join(p.pipe(), wire.MPSSocket), 0o666, func(c *net.UnixConn) { s.program(p, c, true) })
	}

	return err
}

// Check says whether programs can reach a card by MPS.
// Errors: unavailable when they cannot.
func (s *Simulator) Check(ctx context.Context, uuid string) error {
	p, err := s.ask(ctx, "asking simulated MPS", uuid)
	if err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shared == nil {
		return berth.Errorf(berth.KindUnavailable, "the simulated MPS of GPU %s was not started", uuid)
	}

	return nil
}

// Pipe is the directory to mount into containers that share a card by MPS.
func (s *Simulator) Pipe(uuid string) string {
	p, err := s.place(uuid)
	if err != nil {
		return ""
	}

	return p.pipe()
}

// Clients are a card's MPS clients by ascending PID. Their server has no PID.
func (s *Simulator) Clients(ctx context.Context, uuid string) (clients []mps.Client, err error) {
	p, err := s.ask(ctx, "listing clients of simulated MPS", uuid)
	if err != nil {
		return nil, err
	}

	for _, process := range p.card.read().Processes {
		if process.MPS {
			clients = append(clients, mps.Client{PID: process.PID})
		}
	}

	return clients, nil
}

// Stop ends a card's MPS, unless it has clients.
func (s *Simulator) Stop(_ context.Context, uuid string) (stopped bool, err error) {
	p, err := s.place(uuid)
	if err != nil || !p.card.unserved() {
		return false, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shared != nil {
		err = p.shared.Close()
		p.shared = nil
	}

	return true, err
}
