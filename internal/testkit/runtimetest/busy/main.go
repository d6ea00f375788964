// Command busy is the program inside the test image berth-test/busy:1: it follows
// its arguments, for tests of the container side. scripts/test-image
// builds it.
//
//	exit N            ends with code N
//	sleep             until SIGTERM, then ends with code 143
//	ignore            prints "ready", ignores SIGTERM and sleeps
//	alloc MIB         takes memory and touches it, prints "ready", then sleeps
//	child MIB [CODE]  runs "alloc MIB" as a child; ends with CODE (0) when it died
//	child-and-sleep MIB  the same, then sleeps
//	spam LINES        prints numbered lines, odd ones to standard error
//	long BYTES        prints a line of BYTES bytes in pieces, between lines on standard error
//	binary            prints every byte value once, no end of line
//	write PATH TEXT   writes a file
//	cat PATH          prints a file
//	forkbomb          starts sleeping children until it is refused, prints how many
//	dial ADDRESS      connects by TCP; prints why not
//	env               prints the environment
//	train MS VALUE [MIB]  takes memory, works for a while and prints {"val": VALUE}
//
// Scripts that save, grow or catch errors are in training.go:
//
//	checkpoint MS     resumes and saves; prints {"val": 1}, 2 after a probe's checkpoint, 3 when told to resume from nothing
//	epochs MS VALUE MIB  prints {"epoch": 1, "val": VALUE/4} after a quarter of its time, up to 4
//	late MS VALUE MIB  takes memory after 60 % of its time; prints {"val": VALUE}
//	stage MS TEXT     works for a while and writes TEXT to /trial/out/text
//	reads MS VALUE TEXT…  as train, and ends with code 9 unless each stage's output has its TEXT
//	caught MS         prints a MemoryError that its script caught; ends with code 1
//
// fence.go has the jobs that look around:
//
//	args …            prints its arguments as a JSON list, then {"val": 1}
//	fence             prints its view of the host, then {"val": 1}
//	gpu FLAGS         trains on a simulated GPU as TensorFlow does on a real one; -h lists the flags
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errUsage = errors.New("usage: busy exit|sleep|ignore|alloc|child|spam|long|binary|write|cat|forkbomb|dial|env …")

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "busy:", err)

		code = max(code, 1)
	}

	os.Exit(code)
}

func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errUsage
	}

	arg := slices.Concat(args[1:], []string{"", "", ""})

	switch args[0] {
	case "exit":
		return number(arg[0]), nil
	case "sleep":
		return sleep(), nil
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		say("ready")
		time.Sleep(time.Hour) // select{} would be a deadlock to the Go runtime

		return 0, nil
	case "alloc":
		return alloc(number(arg[0]))
	case "child":
		return child(arg[0], number(arg[1]))
	case "child-and-sleep":
		if code, err := child(arg[0], 0); err != nil {
			return code, err
		}

		return sleep(), nil
	case "spam":
		return 0, spam(number(arg[0]))
	case "long":
		return 0, long(number(arg[0]))
	case "binary":
		return 0, binary()
	case "write":
		return 0, os.WriteFile(arg[0], []byte(arg[1]), 0o600)
	case "cat":
		return 0, cat(arg[0])
	case "forkbomb":
		return forkbomb()
	case "dial":
		return 0, dial(arg[0])
	case "train":
		return train(milliseconds(arg[0]), arg[1], number(arg[2]))
	case "epochs":
		return epochs(milliseconds(arg[0]), arg[1], number(arg[2]))
	case "checkpoint":
		return checkpoint(milliseconds(arg[0]))
	case "late":
		return late(milliseconds(arg[0]), arg[1], number(arg[2]))
	case "stage":
		time.Sleep(milliseconds(arg[0]))

		return 0, os.WriteFile("/trial/out/text", []byte(arg[1]), 0o600)
	case "reads":
		return reads(milliseconds(arg[0]), arg[1], args[3:])
	case "caught":
		return caught(milliseconds(arg[0])), nil
	case "args":
		list, err := json.Marshal(args[1:])
		say(string(list))
		say(`{"val": 1}`)

		return 0, err
	case "fence":
		fence()

		return 0, nil
	case "gpu":
		return gpu(args[1:])
	case "env":
		say(strings.Join(os.Environ(), "\n"))

		return 0, nil
	default:
		return 2, errUsage
	}
}

func say(text string) { fmt.Fprintln(os.Stdout, text) }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}

	return n
}

func milliseconds(text string) time.Duration { return time.Duration(number(text)) * time.Millisecond }

func sleep() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	say("ready")
	<-signals

	return 128 + int(syscall.SIGTERM)
}

func alloc(mib int) (int, error) {
	if err := take(mib); err != nil {
		return 1, err
	}

	return sleep(), nil
}

// take allocates memory and touches every page of it.
func take(mib int) error {
	const step = 4 << 20

	for taken := 0; taken < mib<<20; taken += step {
		memory, err := syscall.Mmap(-1, 0, step, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return err
		}

		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i] = 1
		}
	}

	return nil
}

func child(mib string, code int) (int, error) {
	if err := exec.Command(os.Args[0], "alloc", mib).Run(); err == nil { //nolint:noctx // dies with the container
		return 1, errors.New("the child lived")
	}

	return code, nil
}

func spam(lines int) error {
	for n := range lines {
		out := os.Stdout
		if n%2 == 1 {
			out = os.Stderr
		}

		if _, err := fmt.Fprintf(out, "line %d\n", n); err != nil {
			return err
		}
	}

	return nil
}

// long writes one line to standard output in pieces of 16 KiB, with a pause and
// a line on standard error after each, as a progress bar among warnings does; then a line "end".
func long(size int) error {
	const piece = 16 << 10

	for n := 0; n*piece < size; n++ {
		letter := byte('a' + n%26)
		if _, err := os.Stdout.Write(bytes.Repeat([]byte{letter}, min(piece, size-n*piece))); err != nil {
			return err
		}

		time.Sleep(20 * time.Millisecond)
		fmt.Fprintf(os.Stderr, "after piece %d\n", n)
	}

	say("\nend")

	return nil
}

func binary() error {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}

	_, err := os.Stdout.Write(all)

	return err
}

func cat(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	_, err = os.Stdout.Write(data)

	return err
}

func forkbomb() (int, error) {
	for n := 0; ; n++ {
		if err := exec.Command(os.Args[0], "ignore").Start(); err != nil { //nolint:noctx // dies with the container
			say(strconv.Itoa(n) + " children")

			return 0, nil //nolint:nilerr // the limit was the aim
		}
	}
}

func dial(address string) error {
	conn, err := net.DialTimeout("tcp", address, 2*time.Second) //nolint:noctx // has its own limit
	if err != nil {
		return err
	}

	return conn.Close()
}
