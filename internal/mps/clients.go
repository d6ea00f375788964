package mps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berthml/berth"
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
	if err := g.take(ctx); err != nil {
		return nil, err
	}
	defer g.give()

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

// Terminate takes the GPU away from those clients whose PID is given, and returns
// once the server has let go of them. It passes over a PID that is no client. The
// processes still run, and each gets CUDA_ERROR_MPS_CLIENT_TERMINATED from its next
// call; only now is it safe to kill them. A client that is killed in the middle of
// its work may hang the server, and with it the other clients.
//
// Terminate goes on after a client that it cannot end.
// Errors: unavailable when the daemon does not answer, or answers with an error.
func (m *MPS) Terminate(ctx context.Context, uuid string, pids []int) error {
	g := m.gpu(uuid)
	if err := g.take(ctx); err != nil {
		return err
	}
	defer g.give()

	clients, err := m.clients(ctx, g)
	if err != nil {
		return err
	}

	var failures []error

	for _, client := range clients {
		if slices.Contains(pids, client.PID) {
			failures = append(failures, m.terminate(ctx, g, client))
		}
	}

	return errors.Join(failures...)
}

// terminate ends one client. The answer comes when the server has finished: 0, or
// CUDA's error.
func (m *MPS) terminate(ctx context.Context, g *gpu, client Client) error {
	command := fmt.Sprintf("terminate_client %d %d", client.Server, client.PID)

	answer, err := m.ask(ctx, g, command)
	if err == nil && (answer == "0" || answer == "CUDA_SUCCESS") {
		return nil
	}

	if err == nil {
		err = g.odd(command, answer)
	}

	// It may have ended by itself since the list was read.
	clients, listErr := m.clients(ctx, g)
	if listErr == nil && !slices.Contains(clients, client) {
		return nil
	}

	return berth.Errorf(berth.KindOf(err), "terminating client %d: %w", client.PID, err)
}
