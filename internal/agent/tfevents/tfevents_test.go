package tfevents

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// The vector of TensorFlow's own test (tensorflow/core/lib/hash/crc32c_test.cc and
// tensorboard's record_writer_test.py).
func TestMasked(t *testing.T) {
	t.Parallel()

	require.Equal(t, uint32(0x5794d08a), masked([]byte("\x1a\x11CRC test, one two")))
}

func appendNumber(to []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), v)
}

func appendText(to []byte, number protowire.Number, v string) []byte {
	return appendMessage(to, number, []byte(v))
}

func appendMessage(to []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), v)
}

// metadata is a SummaryMetadata.
func metadata(plugin string, class uint64) []byte {
	return appendNumber(appendMessage(nil, metadataPlugin, appendText(nil, pluginName, plugin)), metadataDataClass, class)
}

// scalarEvent is an Event with one scalar, as the plugin of scalars has it.
func scalarEvent(s Scalar) []byte {
	value := appendMessage(appendText(nil, valueTag, s.Tag), valueMetadata, metadata(scalarPlugin, dataClassScalar))
	value = appendMessage(value, valueTensor, tensor(typeFloat, dims(), packed(tensorFloat, float32(s.Value))))
	out := protowire.AppendFixed64(protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type), math.Float64bits(s.WallTime))

	return append(appendNumber(out, eventStep, uint64(s.Step)), event(value)...) //nolint:gosec // G115: two's complement
}

func TestDecoder_ReadsScalars(t *testing.T) {
	t.Parallel()

	d := NewDecoder()

	for _, want := range []Scalar{
		{"loss", 0, 1.5, 0.5}, {"loss", 1, 2.5, 0.9}, {"acc/val", -3, 3.5, math.Inf(-1)}, {"loss", math.MaxInt64, 4, 0},
	} {
		got, err := d.Scalars(scalarEvent(want))
		require.NoError(t, err)
		require.Equal(t, []Scalar{want}, got)
	}
}

// tensor is a TensorProto.
func tensor(kind uint64, rest ...[]byte) []byte {
	return append(appendNumber(nil, tensorType, kind), bytes.Join(rest, nil)...)
}

func dims(sizes ...uint64) []byte {
	var shape []byte
	for _, n := range sizes {
		shape = appendMessage(shape, shapeDim, appendNumber(nil, 1, n))
	}

	return appendMessage(nil, tensorShape, shape)
}

func content(v any) []byte { return packed(tensorContent, v) }

func packed(number protowire.Number, v any) []byte {
	var b bytes.Buffer

	_ = binary.Write(&b, binary.LittleEndian, v)

	return appendMessage(nil, number, b.Bytes())
}

func TestTensorScalar(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		tensor []byte
		want   float64
		none   bool
	}{
		"float_val":           {tensor(typeFloat, dims(), packed(tensorFloat, float32(0.9))), 0.9, false},
		"float_val, one each": {tensor(typeFloat, protowire.AppendFixed32(protowire.AppendTag(nil, tensorFloat, protowire.Fixed32Type), math.Float32bits(2))), 2, false},
		"tensor_content":      {tensor(typeFloat, dims(), content(float32(0.25))), 0.25, false},
		"nothing is zero":     {tensor(typeFloat, dims()), 0, false},
		"double_val":          {tensor(typeDouble, dims(), packed(tensorDouble, 0.1)), 0.1, false},
		"double":              {tensor(typeDouble, dims(), content(0.1)), 0.1, false},
		"int64":               {tensor(9, content(int64(-5))), 0, true},
		"null tensor":         {tensor(typeFloat, dims(0)), 0, true},
		"vector":              {tensor(typeFloat, dims(2), content([]float32{1, 2})), 0, true},
		"text":                {tensor(7, dims()), 0, true},
		"content of two":      {tensor(typeFloat, dims(), content([]float32{1, 2})), 0, true},
	} {
		got, found, err := tensorScalar(c.tensor)
		require.NoError(t, err, name)
		require.Equal(t, !c.none, found, name)

		if found {
			require.InDelta(t, c.want, got, 0, name)
		}
	}
}

// event is an Event with one value.
func event(value ...[]byte) []byte {
	return appendMessage(nil, eventSummary, appendMessage(nil, summaryValue, bytes.Join(value, nil)))
}

func TestDecoder_TellsScalarsFromOthers(t *testing.T) {
	t.Parallel()

	number := appendMessage(nil, valueTensor, tensor(typeFloat, content(float32(3))))
	simple := protowire.AppendFixed32(protowire.AppendTag(nil, valueSimple, protowire.Fixed32Type), math.Float32bits(4))
	tag := func(name string) []byte { return appendText(nil, valueTag, name) }
	of := func(plugin string, class uint64) []byte {
		return appendMessage(nil, valueMetadata, metadata(plugin, class))
	}

	d := NewDecoder()
	count := func(record []byte) int {
		scalars, err := d.Scalars(record)
		require.NoError(t, err)

		return len(scalars)
	}

	require.Equal(t, 1, count(event(tag("old"), simple)))
	require.Equal(t, 1, count(event(tag("a"), of("scalars", 0), number)))
	require.Equal(t, 1, count(event(tag("a"), number)), "metadata is with the first value only")
	require.Equal(t, 1, count(event(tag("own"), of("mine", 1), number)), "its class says that it is a scalar")
	require.Equal(t, 0, count(event(tag("h"), of("histograms", 2), number)))
	require.Equal(t, 0, count(event(tag("h"), number)))
	require.Equal(t, 1, count(event(tag("unsaid"), number)))
	require.Equal(t, 0, count(event(tag("nothing"))))
	require.Equal(t, 0, count(nil))
}

// No data makes the decoder panic or allocate without bound.
func TestDecoder_TakesAnyBytes(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		_, _ = NewDecoder().Scalars(data)
		_, _, _ = tensorScalar(data)
	})
}

func TestShortest(t *testing.T) {
	t.Parallel()

	require.InDelta(t, 0.9, shortest(uint64(math.Float32bits(0.9))), 0)
	rapid.Check(t, func(t *rapid.T) {
		bits := math.Float32bits(rapid.Float32().Draw(t, "v"))
		require.Equal(t, bits, math.Float32bits(float32(shortest(uint64(bits)))))
	})
}

// A Decoder remembers no tag that is too long for a metric: a worker reads the files of all trials of
// its machine.
func TestDecoder_RemembersNoLongTags(t *testing.T) {
	t.Parallel()

	decoder := NewDecoder()
	scalars, err := decoder.Scalars(scalarEvent(Scalar{Tag: strings.Repeat("x", longestTag+1), Value: 1}))
	require.NoError(t, err)
	require.Empty(t, scalars)
	require.Empty(t, decoder.scalar)
}
