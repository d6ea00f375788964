package mps

import (
	"context"
	"fmt"
	"slices"
)

// Clients returns the PIDs of the processes that are clients of the GPU's server, or servers,
// ascending, each once; they are of the machine, also for a process in a container. Nil when
// there is no client, or no server yet: the daemon starts one for the first client.
// Errors: unavailable when the daemon does not answer, or does not run.
func (m *MPS) Clients(ctx context.Context, uuid string) ([]int, error) {
	g := m.gpu(uuid)
	if err := g.takeDir(ctx); err != nil {
		return nil, err
	}
	defer g.giveDir()

	return m.clients(ctx, g)
}

func (m *MPS) clients(ctx context.Context, g *gpu) (clients []int, err error) {
	servers, err := m.askPIDs(ctx, g, "get_server_list")
	if err != nil {
		return nil, err
	}

	for _, server := range servers {
		pids, err := m.askPIDs(ctx, g, fmt.Sprintf("get_client_list %d", server))
		if err != nil && !m.ended(ctx, g, server) {
			return nil, err
		}

		clients = append(clients, pids...)
	}

	slices.Sort(clients)

	return slices.Compact(clients), nil
}

// ended reports whether a server is gone by now.
func (m *MPS) ended(ctx context.Context, g *gpu, server int) bool {
	servers, err := m.askPIDs(ctx, g, "get_server_list")

	return err == nil && !slices.Contains(servers, server)
}
