package tfevents

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of TensorProto and TensorShapeProto.
const (
	tensorType    = 1
	tensorShape   = 2
	tensorContent = 4
	tensorFloat   = 5
	tensorDouble  = 6
	tensorInt     = 7
	tensorInt64   = 10
	tensorHalf    = 13 // of half and bfloat16, as the bits of an integer

	shapeDim = 2
	dimSize  = 1
)

// Data types (types.proto).
const (
	typeFloat    = 1
	typeDouble   = 2
	typeInt32    = 3
	typeInt64    = 9
	typeBfloat16 = 14
	typeHalf     = 19
)

// tensorScalar reads a tensor of one number; found is false for any other.
func tensorScalar(data []byte) (value float64, found bool, err error) {
	var (
		kind     uint64
		content  []byte
		elements = int64(1)
		bits     uint64 // of the last number in a field of its own
	)

	err = fields(data, func(f field) error {
		switch f.number {
		case tensorType:
			kind = f.varint
		case tensorShape:
			return shape(f.bytes, &elements)
		case tensorContent:
			content = f.bytes
		case tensorFloat, tensorDouble, tensorInt, tensorInt64, tensorHalf:
			bits, err = lastNumber(f)

			return err
		}

		return nil
	})
	if err != nil || elements != 1 {
		return 0, false, err
	}

	if content != nil {
		var ok bool
		if bits, ok = contentBits(kind, content); !ok {
			return 0, false, nil
		}
	}

	value, found = numberOf(kind, bits)

	return value, found, nil
}

// shape multiplies the dimensions of a shape into elements.
func shape(data []byte, elements *int64) error {
	return fields(data, func(f field) error {
		if f.number != shapeDim {
			return nil
		}

		size := int64(0)
		err := fields(f.bytes, func(f field) error {
			if f.number == dimSize {
				size = int64(f.varint) //nolint:gosec // G115: two's complement, as protobuf writes int64
			}

			return nil
		})

		if size != 1 { // nothing but 1 leaves one element
			*elements = 0
		}

		return err
	})
}

// lastNumber is the last of a repeated field, which may be packed.
func lastNumber(f field) (bits uint64, err error) {
	if f.kind != protowire.BytesType {
		return f.varint, nil
	}

	for data := f.bytes; len(data) > 0; {
		var n int

		switch f.number {
		case tensorFloat:
			var v uint32

			v, n = protowire.ConsumeFixed32(data)
			bits = uint64(v)
		case tensorDouble:
			bits, n = protowire.ConsumeFixed64(data)
		default:
			bits, n = protowire.ConsumeVarint(data)
		}

		if n < 0 {
			return 0, errMessage
		}

		data = data[n:]
	}

	return bits, nil
}

// contentBits are the bits of a number as a tensor's content has it, in little-endian order.
func contentBits(kind uint64, content []byte) (bits uint64, ok bool) {
	switch size := sizeOf(kind); {
	case size == 0 || len(content) != size:
		return 0, false
	case size == 2:
		return uint64(binary.LittleEndian.Uint16(content)), true
	case size == 4:
		return uint64(binary.LittleEndian.Uint32(content)), true
	default:
		return binary.LittleEndian.Uint64(content), true
	}
}

func sizeOf(kind uint64) int {
	switch kind {
	case typeHalf, typeBfloat16:
		return 2
	case typeFloat, typeInt32:
		return 4
	case typeDouble, typeInt64:
		return 8
	default:
		return 0
	}
}

// numberOf is the number that bits mean; ok is false for a type that is none.
func numberOf(kind, bits uint64) (value float64, ok bool) {
	switch kind {
	case typeFloat:
		return shortest(math.Float32frombits(uint32(bits))), true //nolint:gosec // G115: four bytes
	case typeDouble:
		return math.Float64frombits(bits), true
	case typeInt32:
		return float64(int32(bits)), true //nolint:gosec // G115: four bytes
	case typeInt64:
		return float64(int64(bits)), true //nolint:gosec // G115: two's complement
	case typeHalf:
		return halfOf(uint16(bits)), true //nolint:gosec // G115: two bytes
	case typeBfloat16:
		return shortest(math.Float32frombits(uint32(bits) << 16)), true //nolint:gosec // G115: two bytes
	default:
		return 0, false
	}
}

// shortest is the shortest decimal that reads back as the same float32: what the
// program meant by 0.9 is 0.9, and not 0.8999999762 below a target of 0.9.
func shortest(v float32) float64 {
	text := strconv.FormatFloat(float64(v), 'g', -1, 32)

	out, err := strconv.ParseFloat(text, 64)
	if err != nil { // it never is
		return float64(v)
	}

	return out
}

// halfOf reads IEEE 754 binary16.
func halfOf(bits uint16) float64 {
	sign := 1.0
	if bits>>15 == 1 {
		sign = -1
	}

	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)

	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}

		return math.Inf(int(sign))
	default:
		return sign * math.Ldexp(1024+fraction, exponent-25)
	}
}

// float and double are what a field of these types holds.
func (f field) float() float64 { return shortest(math.Float32frombits(uint32(f.varint))) } //nolint:gosec // G115: four bytes

func (f field) double() float64 { return math.Float64frombits(f.varint) }
