package artifacts

import (
	"bytes"
	"os"
)

// holeBytes is the unit of zeroes that becomes a hole.
const holeBytes = 16 << 10

var zeroes [holeBytes]byte

// sparse writes a file that ends at its start and leaves holes for zeroes. Call end after the last write:
// a hole at the end sets no size by itself.
type sparse struct {
	file *os.File
	at   int64 // where it begins, then where it is
}

func (s *sparse) Write(p []byte) (n int, err error) {
	for n < len(p) {
		block := p[n:min(len(p), n+holeBytes-int(s.at%holeBytes))]

		if !bytes.Equal(block, zeroes[:len(block)]) {
			if _, err := s.file.WriteAt(block, s.at); err != nil {
				return n, err
			}
		}

		n += len(block)
		s.at += int64(len(block))
	}

	return n, nil
}

func (s *sparse) end() error { return s.file.Truncate(s.at) }
