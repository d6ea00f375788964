package mps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Client is a process that uses a GPU through MPS.
type Client struct {
	PID    int // of the machine, also for a process in a container
	Server int // PID of the server that the client is connected to
}

// Clients returns the processes that are clients of the GPU's server, or servers,
// by ascending PID, each once. Nil when there is no client, or no server yet: the
// daemon starts one for the first client.
// Errors: unavailable when the daemon does not answer, or does not run.
func (m *MPS) Clients(ctx context.Context, uuid string) ([]Client, error) {
	g := m.gpu(uuid)
	if err := g.takeDir(ctx); err != nil {
		return nil, err
	}
	defer g.giveDir()

	return m.clients(ctx, g)
}

func (m *MPS) clients(ctx context.Context, g *gpu) ([]Client, error) {
	servers, err := m.askPIDs(ctx, g, "get_server_list")
	if err != nil {
		return nil, err
	}

	var clients []Client

	for _, server := range servers {
		pids, err := m.askPIDs(ctx, g, fmt.Sprintf("get_client_list %d", server))
		if err != nil && m.ended(ctx, g, server) {
			continue
		}

		if err != nil {
			return nil, err
		}

		for _, pid := range pids {
			clients = append(clients, Client{PID: pid, Server: server})
		}
	}

	slices.SortFunc(clients, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Server, b.Server))
	})

	return slices.CompactFunc(clients, func(a, b Client) bool { return a.PID == b.PID }), nil
}

// ended reports whether a server is gone by now.
func (m *MPS) ended(ctx context.Context, g *gpu, server int) bool {
	servers, err := m.askPIDs(ctx, g, "get_server_list")

	return err == nil && !slices.Contains(servers, server)
}
