package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// HeaderBytes are in front of a record's data, FooterBytes behind it.
const (
	HeaderBytes = 12
	FooterBytes = 4
)

const (
	lengthBytes = 8
	maskDelta   = 0xa282ead8 // tensorflow/core/lib/hash/crc32c.h, kMaskDelta
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is a CRC-32C as records have it: a checksum of data that holds checksums
// is a weak one, so it is turned by 15 bits and a constant is added.
func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, castagnoli)

	return (sum>>15 | sum<<17) + maskDelta
}

// DataBytes reads a record's header. ok is false for one whose checksum is wrong.
func DataBytes(header []byte) (n uint64, ok bool) {
	return binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint32(header[lengthBytes:]) == masked(header[:lengthBytes])
}

// Valid reports whether data has the checksum that its footer says.
func Valid(data, footer []byte) bool {
	return binary.LittleEndian.Uint32(footer) == masked(data)
}

// IsEventFile reports whether TensorBoard takes a file of this name for one with
// events (backend/event_processing/io_wrapper.py, IsTensorFlowEventsFile).
func IsEventFile(name string) bool { return strings.Contains(name, "tfevents") }
