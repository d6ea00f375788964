package mps_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The control program of these tests is this test binary, under NVIDIA's name. The
// file variant beside it says how it behaves:
//
//	(empty)  as the real one
//	old      does not know -multiuser-server
//	mute     -d fails at once, for a reason of its own
//	dies     -d succeeds, and the daemon dies with words in its log
//
// A daemon takes the real commands, and these of the tests:
//
//	client <server> <pid>     a client connects
//	ghost <server>            a server is listed once more, and has ended
//	busy <n>                  the next n questions are turned away
//	garbage                   lists of clients make no sense from now on
//	hang                      nothing is answered from now on
//	heard                     the commands so far, one a line
const (
	fakeName  = "nvidia-cuda-mps-control"
	fakeDying = "no CUDA-capable device is detected"
	fakeMute  = "An instance of this daemon is already running"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == fakeName {
		os.Exit(fakeMain(os.Args[1:]))
	}

	for name, value := range map[string]string{
		// With -race, a program sleeps 1 s before it exits: so would each control program.
		"GORACE": os.Getenv("GORACE") + " atexit_sleep_ms=0",
		// What steers CUDA in the worker is not for a daemon.
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "5",
		"CUDA_VISIBLE_DEVICES":              "none",
		testerVariable:                      strconv.Itoa(os.Getpid()),
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}

	// Daemons leave their parent, as real ones do. They become ours, not init's, so
	// that ended ones do not stay in the process table.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "adopting daemons:", errno)
		os.Exit(1)
	}

	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
				os.Exit(code)
			}
		}
	}))
}

// testerVariable holds the PID of the tests, whose end is a daemon's end. A test that
// panics or times out cleans nothing up.
const testerVariable = "BERTH_MPS_TESTER"

func endWithTests() {
	for range time.Tick(100 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join("/proc", os.Getenv(testerVariable))); err != nil {
			os.Exit(1)
		}
	}
}

// setChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const setChildSubreaper = 36

func fakeMain(args []string) int {
	variant, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "variant"))
	pipe, log := os.Getenv("CUDA_MPS_PIPE_DIRECTORY"), os.Getenv("CUDA_MPS_LOG_DIRECTORY")

	switch {
	case len(args) == 0:
		return fakeQuestion(pipe)
	case args[0] == "daemon":
		return fakeDaemon(pipe)
	}

	appendTo(filepath.Join(log, "args"), strings.Join(args, " ")+"\n")

	switch {
	case string(variant) == "old" && slices.Contains(args, "-multiuser-server"):
		fmt.Fprintln(os.Stderr, "Unknown option: -multiuser-server\nUsage: nvidia-cuda-mps-control [-d | -f]")

		return 1
	case string(variant) == "mute":
		fmt.Fprintln(os.Stderr, fakeMute)

		return 1
	case string(variant) == "dies":
		appendTo(filepath.Join(log, "control.log"), "[Control] "+fakeDying+"\n")

		return 0
	}

	// The daemon keeps our output open, as a forking one does.
	daemon := exec.Command(os.Args[0], "daemon") //nolint:noctx // it outlives us
	daemon.Stdout, daemon.Stderr = os.Stdout, os.Stderr

	if err := daemon.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return 0
}

func appendTo(path, text string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func fakeQuestion(pipe string) int {
	question, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}

	said, ok, err := converse(pipe, string(question))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Cannot find MPS control daemon process")

		return 1
	}

	fmt.Fprintln(os.Stdout, said)

	if !ok {
		return 1
	}

	return 0
}

// converse sends the daemon one command. ok is false when the program is to fail
// with this output.
func converse(pipe, command string) (said string, ok bool, err error) {
	conn, err := net.Dial("unix", filepath.Join(pipe, "control")) //nolint:noctx // the program is killed when it hangs
	if err != nil {
		return "", false, err
	}
	defer conn.Close() //nolint:errcheck // it was read

	if _, err := fmt.Fprintln(conn, strings.TrimSpace(command)); err != nil {
		return "", false, err
	}

	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", false, err
	}

	said, failed := strings.CutPrefix(string(answer), "!")

	return strings.TrimSpace(said), !failed, nil
}

type fakeState struct {
	clients map[int]int // server by client
	servers []int
	ghosts  []int
	heard   []string
	busy    int
	garbage bool
}

func fakeDaemon(pipe string) int {
	syscall.Umask(0o077) // the daemon's files are for root alone, until the manager admits others

	listener, err := net.Listen("unix", filepath.Join(pipe, "control")) //nolint:noctx // it ends with the process
	if err == nil {
		_, err = net.Listen("unix", filepath.Join(pipe, "control_privileged")) //nolint:noctx // the same
	}

	if err == nil {
		err = syscall.Mkfifo(filepath.Join(pipe, "log"), 0o777)
	}

	if err == nil {
		err = os.WriteFile(filepath.Join(pipe, fakeName+".pid"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	go endWithTests()

	state := fakeState{clients: make(map[int]int)}

	for { // one connection at a time, as the real one
		conn, err := listener.Accept()
		if err != nil {
			return 1
		}

		buffer := make([]byte, 1024)
		n, _ := conn.Read(buffer)
		command := strings.TrimSpace(string(buffer[:n]))

		switch command {
		case "hang":
			fmt.Fprintln(conn, "")
			_ = conn.Close()

			select {} // for ever: signals still end it
		case "quit":
			_ = os.Remove(filepath.Join(pipe, fakeName+".pid")) // the sockets stay, as the real one's do

			return 0
		}

		fmt.Fprintln(conn, state.answer(command))
		_ = conn.Close()
	}
}

func (s *fakeState) answer(command string) string {
	words := strings.Fields(command)
	numbers := make([]int, 3) // the numbers after the first word

	for i, word := range words[1:] {
		numbers[i], _ = strconv.Atoi(word)
	}

	if s.busy > 0 {
		s.busy--

		return "!Cannot send command to MPS control daemon process"
	}

	defer func() { s.heard = append(s.heard, command) }()

	switch words[0] {
	case "heard":
		return strings.Join(s.heard, "\n")
	case "client":
		s.clients[numbers[1]] = numbers[0]
		if !slices.Contains(s.servers, numbers[0]) {
			s.servers = append(s.servers, numbers[0])
		}
	case "ghost":
		s.ghosts = append(s.ghosts, numbers[0])
	case "busy":
		s.busy = numbers[0]
	case "garbage":
		s.garbage = true
	case "get_default_active_thread_percentage":
		return "100.0"
	case "get_server_list":
		listed := append(slices.Clone(s.servers), s.ghosts...)
		s.ghosts = nil

		return lines(listed)
	case "get_client_list":
		return s.clientList(numbers[0])
	case "terminate_client":
		return s.terminate(numbers[0], numbers[1])
	default:
		return "!unknown command"
	}

	return ""
}

func (s *fakeState) clientList(server int) string {
	if s.garbage {
		return "Server is busy"
	}

	if !slices.Contains(s.servers, server) {
		return "Server not found"
	}

	var pids []int

	for _, pid := range slices.Backward(slices.Sorted(maps.Keys(s.clients))) {
		if s.clients[pid] == server {
			pids = append(pids, pid)
		}
	}

	return lines(pids)
}

func (s *fakeState) terminate(server, pid int) string {
	if s.clients[pid] != server {
		return "CUDA_ERROR_INVALID_VALUE"
	}

	delete(s.clients, pid)

	return "0"
}

func lines(numbers []int) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = strconv.Itoa(n)
	}

	return strings.Join(text, "\n")
}
