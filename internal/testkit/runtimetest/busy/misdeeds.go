package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// misbehave runs a misbehaving job.
func misbehave(what string, args []string) (int, error) {
	arg := append(args, "", "") //nolint:gocritic // a copy is intended

	switch what {
	case "flood":
		return 0, flood(time.Duration(number(arg[0]))*time.Second, max(number(arg[1]), 128))
	case "noise":
		return 0, noise(number(arg[0]))
	case "bomb":
		return bomb(time.Duration(number(arg[0])) * time.Second)
	case "fill":
		return fill(arg[0], number(arg[1]))
	case "metrics":
		return 0, metrics(number(arg[0]), number(arg[1]))
	case "trick":
		return 0, trick(arg[0])
	case "args":
		list, err := json.Marshal(args)
		say(string(list))
		say(`{"val": 1}`)

		return 0, err
	case "fence":
		fence()

		return 0, nil
	default:
		return 0, work(time.Duration(number(arg[0])) * time.Millisecond)
	}
}

// flood prints lines of this many bytes in writes of 64 KiB.
func flood(during time.Duration, line int) error {
	block := bytes.Repeat([]byte(strings.Repeat("x", line-1)+"\n"), max(64<<10/line, 1))
	written := 0

	for began := time.Now(); during == 0 || time.Since(began) < during; {
		n, err := os.Stdout.Write(block)
		written += n

		if err != nil {
			return err
		}
	}

	return report(fmt.Sprintf(`{"val": %d}`, written))
}

// report prints metrics and, in a trial, appends them to its metrics file:
// Docker may lose the line of a job that printed too fast.
func report(metrics string) error {
	say(metrics)

	path := os.Getenv("TRIAL_METRICS_FILE")
	if path == "" {
		return nil
	}

	return os.WriteFile(path, []byte(`{"metrics":`+metrics+"}\n"), 0o600)
}

// noise prints every byte value but the end of a line.
func noise(size int) error {
	random := rand.New(rand.NewPCG(1, 2))
	out := bufio.NewWriter(os.Stdout)

	for range size {
		b := byte(random.IntN(256)) //nolint:gosec // G115: it fits
		if b == '\n' {
			b = 0
		}

		if err := out.WriteByte(b); err != nil {
			return err
		}
	}

	return out.Flush()
}

// bomb starts children that sleep, and goes on for a time after the first that it is refused.
func bomb(during time.Duration) (int, error) {
	refused, started := 0, 0

	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if err := exec.Command(os.Args[0], "ignore").Start(); err != nil { //nolint:noctx // dies with the container
			if refused == 0 {
				end = time.Now().Add(during)
			}

			refused++

			continue
		}

		started++
	}

	code := 9
	if refused == 0 {
		code = 8
	}

	return code, fmt.Errorf("started %d children, was refused %d times", started, refused)
}

// fill writes files of a MiB until it cannot, or has written enough.
func fill(dir string, mib int) (int, error) {
	block := make([]byte, 1<<20)

	for n := range mib {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d", n)), block, 0o600); err != nil {
			return 1, err
		}
	}

	return sleep(), nil
}

// metrics appends records of one value each to the metrics file.
func metrics(points, names int) error {
	file, err := os.OpenFile(os.Getenv("TRIAL_METRICS_FILE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	out := bufio.NewWriter(file)
	for n := range points {
		fmt.Fprintf(out, `{"step":%d,"metrics":{"m%d":%d}}`+"\n", n/names, n%names, n)
	}

	fmt.Fprintln(out, `{"step":1,"metrics":{"val":7}}`)

	return errors.Join(out.Flush(), file.Close())
}

// trick puts something else where the metrics file should be.
func trick(kind string) error {
	path := os.Getenv("TRIAL_METRICS_FILE")

	switch kind {
	case "fifo":
		return syscall.Mkfifo(path, 0o600)
	case "symlink":
		return os.Symlink("/etc/shadow", path)
	case "link out":
		return os.Symlink("../../../host-id", path)
	case "directory":
		return os.Mkdir(path, 0o700)
	case "device":
		return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) // /dev/zero
	case "sparse":
		if err := os.WriteFile(path, []byte(`{"metrics":{"val":1}}`+"\n"), 0o600); err != nil {
			return err
		}

		return os.Truncate(path, 10<<30)
	default:
		return errUsage
	}
}

// fence prints as JSON the fence around a job, seen from inside.
func fence() {
	facts := map[string]any{}

	for _, path := range []string{"/proc/self/status", "/proc/self/limits", "/proc/mounts", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max"} {
		data, err := os.ReadFile(path)
		facts[path] = string(data)

		if err != nil {
			facts[path] = err.Error()
		}
	}

	var interfaces []string

	if all, err := net.Interfaces(); err == nil {
		for _, i := range all {
			interfaces = append(interfaces, i.Name)
		}
	}

	for _, path := range []string{"/var/run/docker.sock", "/run/docker.sock", "/trial/out/../../attempts", "/proc/1/root/var/lib/docker"} {
		if _, err := os.Stat(path); err == nil {
			facts["sees "+path] = true
		}
	}

	trial, _ := filepath.Glob("/trial/*")
	facts["interfaces"], facts["trial"] = interfaces, trial
	facts["root"] = fmt.Sprint(os.WriteFile("/x", nil, 0o600))
	facts["in"] = fmt.Sprint(os.WriteFile("/trial/in/x", nil, 0o600))
	facts["exec in /tmp"] = fmt.Sprint(execIn("/tmp"))
	facts["mount"] = fmt.Sprint(syscall.Mount("none", "/tmp", "tmpfs", 0, ""))
	facts["setuid"] = fmt.Sprint(syscall.Setuid(0))
	facts["bpf"] = fmt.Sprint(errno(syscall.RawSyscall(321, 0, 0, 0))) // bpf(2) on amd64: seccomp refuses it
	facts["env"] = os.Environ()

	data, err := json.Marshal(facts)
	if err != nil {
		data = []byte(err.Error())
	}

	say("FENCE " + string(data))
	say(`{"val": 1}`)
}

func errno(_, _ uintptr, e syscall.Errno) error {
	if e == 0 {
		return nil
	}

	return e
}

// execIn copies this program to a directory and runs it there.
func execIn(dir string) error {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}

	path := filepath.Join(dir, "copy")
	if err := os.WriteFile(path, program, 0o700); err != nil { //nolint:gosec // G306: it is to be run
		return err
	}

	return exec.Command(path, "exit", "0").Run() //nolint:noctx // ends by itself
}

// work computes until it has used this much processor time.
func work(want time.Duration) error {
	began := time.Now()
	sum := uint64(1)

	for used := time.Duration(0); used < want; {
		for range 1 << 20 {
			sum = sum*6364136223846793005 + 1442695040888963407
		}

		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}

		used = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}

	return report(fmt.Sprintf(`{"val": %.3f, "odd": %d}`, time.Since(began).Seconds(), sum%2))
}
