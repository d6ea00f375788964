package tfevents

import (
	"errors"

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
	var (
		event     Scalar
		summaries [][]byte
	)

	err := fields(record, func(f field) error {
		switch f.number {
		case eventWallTime:
			event.WallTime = f.double()
		case eventStep:
			event.Step = int64(f.varint) //nolint:gosec // G115: two's complement, as protobuf writes int64
		case eventSummary:
			summaries = append(summaries, f.bytes)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	var out []Scalar

	for _, summary := range summaries {
		err := fields(summary, func(f field) error {
			if f.number != summaryValue {
				return nil
			}

			s, found, err := d.value(f.bytes)
			if found {
				s.Step, s.WallTime = event.Step, event.WallTime
				out = append(out, s)
			}

			return err
		})
		if err != nil {
			return nil, err
		}
	}

	return out, nil
}

// value reads a value of a summary; found is false for one that is no scalar.
func (d *Decoder) value(data []byte) (s Scalar, found bool, err error) {
	var (
		tensor, metadata []byte
		simple, long     bool
	)

	err = fields(data, func(f field) error {
		switch f.number {
		case valueTag:
			if long = len(f.bytes) > longestTag; !long {
				s.Tag = string(f.bytes)
			}
		case valueSimple:
			s.Value, simple = f.float(), true
		case valueTensor:
			tensor = f.bytes
		case valueMetadata:
			metadata = f.bytes
		}

		return nil
	})
	if err != nil || long {
		return s, false, err
	}

	if err := d.learn(s.Tag, metadata); err != nil {
		return s, false, err
	}

	if scalar, known := d.scalar[s.Tag]; known && !scalar {
		return s, false, nil
	}

	if simple || tensor == nil {
		return s, simple, nil
	}

	s.Value, found, err = tensorScalar(tensor)

	return s, found, err
}

// learn remembers what a tag's metadata says of its values.
func (d *Decoder) learn(tag string, metadata []byte) error {
	if metadata == nil || len(d.scalar) >= mostTags {
		return nil
	}

	var (
		name  string
		class uint64
	)

	err := fields(metadata, func(f field) error {
		switch f.number {
		case metadataPlugin:
			return fields(f.bytes, func(f field) error {
				if f.number == pluginName {
					name = string(f.bytes)
				}

				return nil
			})
		case metadataDataClass:
			class = f.varint
		}

		return nil
	})

	d.scalar[tag] = name == scalarPlugin || class == dataClassScalar || name == "" && class == 0

	return err
}

// field is one of a message: a number, or bytes.
type field struct {
	number int32
	kind   protowire.Type
	varint uint64 // of all kinds that are numbers
	bytes  []byte
}

// fields calls use for each field of a message.
func fields(data []byte, use func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMessage
		}

		data = data[n:]
		f := field{number: int32(number), kind: kind}

		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32

			v, n = protowire.ConsumeFixed32(data)
			f.varint = uint64(v)
		case protowire.Fixed64Type:
			f.varint, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}

		if n < 0 {
			return errMessage
		}

		if err := use(f); err != nil {
			return err
		}

		data = data[n:]
	}

	return nil
}
