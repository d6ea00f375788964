// Package wire is the protocol between a program in a container and a simulated GPU,
// in place of CUDA's calls: lines of JSON on a Unix socket, one answer to each
// request.
//
//	hello ──▶ alloc, free, step … ──▶ close, which gives all memory back
//
// The GPU identifies a program by the PID of its connection. The package imports
// the standard library alone, because the programs that use it are small.
package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// Where a container finds its card.
const (
	Dir       = "/trial/gpu"          // where the card's directory is mounted
	Variable  = "BERTH_SIMULATED_GPU" // the environment variable with the path of the socket
	Socket    = "card.sock"           // in Dir
	MPSSocket = "control"             // in the directory that CUDA_MPS_PIPE_DIRECTORY names
	CardPath  = Dir + "/" + Socket    // the value of Variable
)

// Op is a request's operation.
type Op string

// The requests.
const (
	Hello Op = "hello" // makes a context, which takes memory; always the first one
	Alloc Op = "alloc" // takes Bytes, or nothing
	Free  Op = "free"  // gives Bytes back
	Run   Op = "step"  // runs a step; the answer comes when it is done
	Crash Op = "crash" // uses an address that is not its own
)

// Request is one request.
type Request struct {
	Op Op `json:"op"`

	// Bytes are the bytes to take or give back. In a hello they are the program's memory
	// on a GPU whose worker was restarted, with the context. 0 = it is new.
	Bytes int64 `json:"bytes,omitempty"`

	// LimitBytes, of a hello to MPS, is the most that the program may hold, context
	// and all (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT); 0 = no limit.
	LimitBytes int64 `json:"limit_bytes,omitempty"`

	Step *Step `json:"step,omitempty"` // of a step
}

// Step is the work of a step on the GPU.
type Step struct {
	GPU time.Duration `json:"gpu"` // nanoseconds, with the GPU alone
	SM  float64       `json:"sm"`  // share of the SMs that a kernel fills, 0 to 1
	Bus float64       `json:"bus"` // share of the memory's bandwidth, 0 to 1
}

// Code is CUDA's name of an error; empty = none.
type Code string

// The errors that a card answers with.
const (
	OutOfMemory    Code = "CUDA_ERROR_OUT_OF_MEMORY"
	IllegalAddress Code = "CUDA_ERROR_ILLEGAL_ADDRESS"
	InvalidValue   Code = "CUDA_ERROR_INVALID_VALUE"
	Uncorrectable  Code = "CUDA_ERROR_ECC_UNCORRECTABLE"
	DeviceLost     Code = "CUDA_ERROR_DEVICE_UNAVAILABLE"
	ServerNotReady Code = "CUDA_ERROR_MPS_SERVER_NOT_READY"
	MaxClients     Code = "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"
)

// Answer is the answer to one request.
type Answer struct {
	Error Code   `json:"error,omitempty"`
	Text  string `json:"text,omitempty"` // CUDA's text for the error

	Model      string `json:"model,omitempty"`
	HeldBytes  int64  `json:"held_bytes"`  // by this program, context and all
	FreeBytes  int64  `json:"free_bytes"`  // that it may still take
	TotalBytes int64  `json:"total_bytes"` // of the card
}

// Conn is a program's connection to its card. It is not safe for concurrent use.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// patience bounds the connection to a socket.
const patience = 10 * time.Second

// Dial connects to the card at a socket.
func Dial(path string) (*Conn, error) {
	conn, err := net.DialTimeout("unix", path, patience) //nolint:noctx // has its own limit
	if err != nil {
		return nil, fmt.Errorf("connecting to the simulated GPU: %w", err)
	}

	return &Conn{conn: conn, in: bufio.NewReader(conn)}, nil
}

// Close ends the connection. The card takes back all that the program held.
func (c *Conn) Close() error { return c.conn.Close() }

// Ask sends a request and waits for its answer, however long the step takes. An
// error means that the GPU is gone; a refusal is in the answer.
func (c *Conn) Ask(r Request) (Answer, error) { return c.ask(r) }

// Tell sends another message than a program's, and waits until it is taken.
func (c *Conn) Tell(message any) error {
	a, err := c.ask(message)
	if err == nil && a.Error != "" {
		err = fmt.Errorf("the simulated GPU refuses: %s: %s", a.Error, a.Text) //nolint:err113 // for people
	}

	return err
}

func (c *Conn) ask(message any) (Answer, error) {
	line, err := json.Marshal(message)
	if err != nil {
		return Answer{}, fmt.Errorf("writing a request to the simulated GPU: %w", err)
	}

	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return Answer{}, fmt.Errorf("asking the simulated GPU: %w", err)
	}

	line, err = c.in.ReadBytes('\n')
	if err != nil {
		return Answer{}, fmt.Errorf("waiting for the simulated GPU: %w", err)
	}

	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return Answer{}, fmt.Errorf("reading the answer %q of the simulated GPU: %w", line, err)
	}

	return a, nil
}
