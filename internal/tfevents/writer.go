package tfevents

import (
	"bufio"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// fileVersion is what the first record of a file says.
const fileVersion = "brain.Event:2"

// Writer writes an event file.
type Writer struct {
	out    *bufio.Writer
	record []byte
	tags   map[string]bool // whose metadata was written
}

// AppendTo goes on with a file that has none of its tags yet.
func AppendTo(to io.Writer) *Writer {
	return &Writer{out: bufio.NewWriter(to), tags: make(map[string]bool)}
}

// NewWriter begins a file; wallTime is in seconds since 1970.
func NewWriter(to io.Writer, wallTime float64) (*Writer, error) {
	w := AppendTo(to)

	event := appendDouble(nil, eventWallTime, wallTime)
	event = appendText(event, eventFileVersion, fileVersion)

	return w, w.write(event)
}

// Scalar writes one value, as the plugin of scalars reads it: a float32.
func (w *Writer) Scalar(s Scalar) error {
	value := appendText(nil, valueTag, s.Tag)

	if !w.tags[s.Tag] {
		w.tags[s.Tag] = true
		value = appendMessage(value, valueMetadata, metadata(scalarPlugin, nil, dataClassScalar))
	}

	tensor := appendNumber(nil, tensorType, typeFloat)
	tensor = appendMessage(tensor, tensorShape, nil)
	tensor = protowire.AppendTag(tensor, tensorFloat, protowire.Fixed32Type)
	tensor = protowire.AppendFixed32(tensor, math.Float32bits(float32(s.Value)))
	value = appendMessage(value, valueTensor, tensor)

	return w.value(s.WallTime, s.Step, value)
}

// Flush writes what is kept.
func (w *Writer) Flush() error { return w.out.Flush() }

// value writes an event with a summary of one value.
func (w *Writer) value(wallTime float64, step int64, value []byte) error {
	event := appendDouble(nil, eventWallTime, wallTime)
	event = appendNumber(event, eventStep, uint64(step)) //nolint:gosec // G115: two's complement, as protobuf writes int64
	event = appendMessage(event, eventSummary, appendMessage(nil, summaryValue, value))

	return w.write(event)
}

func (w *Writer) write(event []byte) error {
	w.record = appendRecord(w.record[:0], event)
	_, err := w.out.Write(w.record)

	return err
}

// metadata is a SummaryMetadata.
func metadata(plugin string, content []byte, class uint64) []byte {
	data := appendText(nil, pluginName, plugin)
	if content != nil {
		data = appendMessage(data, pluginContent, content)
	}

	out := appendMessage(nil, metadataPlugin, data)
	if class != 0 {
		out = appendNumber(out, metadataDataClass, class)
	}

	return out
}

func appendDouble(to []byte, number protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(to, number, protowire.Fixed64Type), math.Float64bits(v))
}

func appendNumber(to []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), v)
}

func appendText(to []byte, number protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), v)
}

func appendMessage(to []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), v)
}
