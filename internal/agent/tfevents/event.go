package tfevents

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of the messages that are read.
const (
	eventWallTime = 1 // double, seconds since 1970
	eventStep     = 2
	eventSummary  = 5

	summaryValue = 1

	valueTag      = 1
	valueSimple   = 2
	valueTensor   = 8
	valueMetadata = 9

	metadataPlugin    = 1
	metadataDataClass = 4

	pluginName = 1

	scalarPlugin    = "scalars"
	dataClassScalar = 1
)

// Scalar is one value of a tag.
type Scalar struct {
	Tag      string
	Step     int64
	WallTime float64 // seconds since 1970, as the writer says
	Value    float64 // may be NaN or infinite
}

// mostTags bounds what a Decoder remembers. Values of a tag above longestTag bytes, which
// no metric's name may have, are passed.
const (
	mostTags   = 10_000
	longestTag = 200
)

// Decoder reads the records of one file, in their order: what a tag's values are
// stands with its first value only.
type Decoder struct {
	scalar map[string]bool // by tag, as its metadata says
}

// NewDecoder is for a file from its beginning.
func NewDecoder() *Decoder { return &Decoder{scalar: make(map[string]bool)} }

var errMessage = errors.New("the record is no event")

// Scalars returns the scalars of a record. Images, histograms, texts and graphs
// give none. Errors: of data that is no event.
func (d *Decoder) Scalars(record []byte) ([]Scalar, error) {
	event, err := fields(record)
	if err != nil {
		return nil, err
	}

	var (
		step     int64
		wallTime float64
		out      []Scalar
	)

	for _, f := range event {
		switch f.number {
		case eventWallTime:
			wallTime = math.Float64frombits(f.bits)
		case eventStep:
			step = int64(f.bits) //nolint:gosec // G115: two's complement, as protobuf writes int64
		case eventSummary:
			scalars, err := d.summary(f.bytes)
			if err != nil {
				return nil, err
			}

			out = append(out, scalars...)
		}
	}

	for i := range out {
		out[i].Step, out[i].WallTime = step, wallTime
	}

	return out, nil
}

// summary reads the scalars of a summary, without step and time.
func (d *Decoder) summary(data []byte) (out []Scalar, err error) {
	summary, err := fields(data)

	for _, f := range summary {
		if f.number != summaryValue {
			continue
		}

		s, found, err := d.value(f.bytes)
		if err != nil {
			return nil, err
		}

		if found {
			out = append(out, s)
		}
	}

	return out, err
}

// value reads a value of a summary; found is false for one that is no scalar.
func (d *Decoder) value(data []byte) (s Scalar, found bool, err error) {
	var tensor, metadata []byte

	value, err := fields(data)

	for _, f := range value {
		switch f.number {
		case valueTag:
			if len(f.bytes) > longestTag {
				return s, false, nil
			}

			s.Tag = string(f.bytes)
		case valueSimple:
			s.Value, found = shortest(f.bits), true
		case valueTensor:
			tensor = f.bytes
		case valueMetadata:
			metadata = f.bytes
		}
	}

	if err == nil && metadata != nil && len(d.scalar) < mostTags {
		d.scalar[s.Tag], err = saysScalar(metadata)
	}

	if scalar, known := d.scalar[s.Tag]; err != nil || known && !scalar {
		return s, false, err
	}

	if !found && tensor != nil {
		s.Value, found, err = tensorScalar(tensor)
	}

	return s, found, err
}

// saysScalar reports whether the metadata of a tag says that its values are scalars, or nothing.
func saysScalar(metadata []byte) (bool, error) {
	var (
		name  string
		class uint64
	)

	all, err := fields(metadata)

	for _, f := range all {
		switch f.number {
		case metadataPlugin:
			plugin, err := fields(f.bytes)
			if err != nil {
				return false, err
			}

			for _, p := range plugin {
				if p.number == pluginName {
					name = string(p.bytes)
				}
			}
		case metadataDataClass:
			class = f.bits
		}
	}

	return name == scalarPlugin || class == dataClassScalar || name == "" && class == 0, err
}

// field is one of a message: a number, or bytes.
type field struct {
	number int32
	bits   uint64 // of all kinds that are numbers
	bytes  []byte
}

// fields splits a message.
func fields(data []byte) (all []field, err error) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, errMessage
		}

		data = data[n:]
		f := field{number: int32(number)}

		switch kind {
		case protowire.VarintType:
			f.bits, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32

			v, n = protowire.ConsumeFixed32(data)
			f.bits = uint64(v)
		case protowire.Fixed64Type:
			f.bits, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}

		if n < 0 {
			return nil, errMessage
		}

		all, data = append(all, f), data[n:]
	}

	return all, nil
}
