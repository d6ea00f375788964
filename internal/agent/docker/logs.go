package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/berthml/berth"
)

// maxFrameBytes is above anything Docker sends: 16 KiB of a line, its stamp, and
// details. A larger frame means that we lost step.
const maxFrameBytes = 1 << 20

// errFrame means that the log is not in Docker's format.
var errFrame = errors.New("malformed log frame")

// Logs calls fn for every chunk of a container's output after from, in
// Docker's order, and for some before it: Docker knows no position, only times.
// berth.LogResume tells them apart. With follow it returns when the container has
// ended, else when all there is was read. An error of fn ends it and is returned
// as it is.
func (d *Docker) Logs(ctx context.Context, id string, from berth.LogPosition, follow bool,
	fn func(berth.LogChunk) error,
) error {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow}
	if since := from.Since(time.Now()); !since.IsZero() {
		options.Since = fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())
	}

	body, err := d.long.ContainerLogs(ctx, id, options)
	if err != nil {
		return d.translate(ctx, err, "reading the log of container %q", id)
	}
	defer body.Close() //nolint:errcheck // only read

	var consumerErr error

	err = readFrames(body, newStamper(), func(chunk berth.LogChunk) error {
		consumerErr = fn(chunk)

		return consumerErr
	})
	if consumerErr != nil {
		return consumerErr
	}

	return d.translate(ctx, err, "reading the log of container %q", id)
}

// readFrames splits Docker's multiplexed stream: per chunk one frame of
//
//	stream (1 = stdout, 2 = stderr) | 0 0 0 | length, big-endian | stamp, space, data
func readFrames(r io.Reader, stamps *stamper, fn func(berth.LogChunk) error) error {
	buffered := bufio.NewReader(r)
	header := make([]byte, 8)

	var frame []byte

	for {
		if _, err := io.ReadFull(buffered, header); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}

			return err
		}

		length := binary.BigEndian.Uint32(header[4:])
		if header[0] > 2 || length > maxFrameBytes {
			return fmt.Errorf("%w: stream %d, %d bytes", errFrame, header[0], length)
		}

		if cap(frame) < int(length) {
			frame = make([]byte, length)
		}

		frame = frame[:length]
		if _, err := io.ReadFull(buffered, frame); err != nil {
			return err
		}

		chunk, err := stamps.chunk(header[0], frame)
		if err != nil {
			return err
		}

		if err := fn(chunk); err != nil {
			return err
		}
	}
}

// stamper makes stamps unique within a stream.
type stamper struct {
	streams map[string]*mark
}

type mark struct {
	raw  time.Time // Docker's stamp of the last chunk
	same int       // chunks with that stamp so far, but one
	open bool      // the last chunk did not end its line
}

func newStamper() *stamper {
	return &stamper{streams: map[string]*mark{berth.Stdout: {}, berth.Stderr: {}}}
}

func (s *stamper) chunk(stream byte, frame []byte) (chunk berth.LogChunk, err error) {
	stamp, data, found := bytes.Cut(frame, []byte(" "))
	if !found {
		return chunk, fmt.Errorf("%w: no stamp", errFrame)
	}

	raw, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return chunk, fmt.Errorf("%w: %w", errFrame, err)
	}

	name := berth.Stdout
	if stream == 2 {
		name = berth.Stderr
	}

	m := s.streams[name]
	if raw.Equal(m.raw) {
		m.same++
	} else {
		// Another stamp is another line. Docker 20.10 loses the end of a line
		// that was longer than 16 KiB.
		if m.open {
			data = append([]byte("\n"), data...)
		}

		m.raw, m.same = raw, 0
	}

	m.open = !bytes.HasSuffix(data, []byte("\n"))

	return berth.LogChunk{Stream: name, At: raw.Add(time.Duration(m.same)).UTC(), Data: data}, nil
}
