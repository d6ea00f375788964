package simgpu

import "context"

// Start is of NVIDIA's MPS. Programs can reach a simulated card by MPS at all times.
// Errors: as of ask.
func (s *Simulator) Start(ctx context.Context, uuid string) error {
	_, err := s.ask(ctx, "starting simulated MPS", uuid)

	return err
}

// Check says whether programs can reach a card by MPS.
func (s *Simulator) Check(ctx context.Context, uuid string) error { return s.Start(ctx, uuid) }

// Pipe is the directory to mount into containers that share a card by MPS.
func (s *Simulator) Pipe(uuid string) string {
	c, err := s.card(uuid)
	if err != nil {
		return ""
	}

	return c.pipe()
}

// Clients are the PIDs of a card's MPS clients, ascending.
func (s *Simulator) Clients(ctx context.Context, uuid string) (clients []int, err error) {
	c, err := s.ask(ctx, "listing clients of simulated MPS", uuid)
	if err != nil {
		return nil, err
	}

	for _, process := range c.read().Processes {
		if process.MPS {
			clients = append(clients, process.PID)
		}
	}

	return clients, nil
}

// Stop ends a card's MPS server, unless it has clients.
func (s *Simulator) Stop(_ context.Context, uuid string) error {
	c, err := s.card(uuid)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.served = c.mpsClients() > 0

	return nil
}
