package tfevents

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Field numbers of TensorProto and TensorShapeProto.
const (
	tensorType    = 1
	tensorShape   = 2
	tensorContent = 4
	tensorFloat   = 5
	tensorDouble  = 6

	shapeDim = 2
)

// Data types (types.proto). Writers of scalars use float; double is for ones that write tensors.
const (
	typeFloat  = 1
	typeDouble = 2
)

// tensorScalar reads a tensor of one number; found is false for any other.
func tensorScalar(data []byte) (value float64, found bool, err error) {
	var (
		kind    uint64
		numbers []byte // in little-endian order
		bits    uint64 // of a number in a field of its own
	)

	tensor, err := fields(data)

	for _, f := range tensor {
		switch f.number {
		case tensorType:
			kind = f.bits
		case tensorShape:
			shape, err := fields(f.bytes)
			if err != nil || len(shape) > 0 && shape[0].number == shapeDim {
				return 0, false, err
			}
		case tensorContent, tensorFloat, tensorDouble: // packed
			numbers, bits = append(numbers, f.bytes...), f.bits
		}
	}

	switch {
	case kind != typeFloat && kind != typeDouble:
		return 0, false, err
	case kind == typeFloat && len(numbers) == 4:
		bits = uint64(binary.LittleEndian.Uint32(numbers))
	case kind == typeDouble && len(numbers) == 8:
		bits = binary.LittleEndian.Uint64(numbers)
	case len(numbers) > 0:
		return 0, false, err
	}

	if kind == typeFloat {
		return shortest(bits), true, err
	}

	return math.Float64frombits(bits), true, err
}

// shortest is the shortest decimal that reads back as the same float32: what the
// program meant by 0.9 is 0.9, and not 0.8999999762 below a target of 0.9.
func shortest(bits uint64) float64 {
	v := float64(math.Float32frombits(uint32(bits))) //nolint:gosec // G115: four bytes
	if out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64); err == nil {
		v = out
	}

	return v
}
