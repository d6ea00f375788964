package tfevents

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Tags and field numbers of TensorBoard's plugin of hyperparameters
// (plugins/hparams/metadata.py, plugin_data.proto, google/protobuf/struct.proto).
const (
	hparamsPlugin = "hparams"
	tagStart      = "_hparams_/session_start_info"
	tagEnd        = "_hparams_/session_end_info"

	dataVersion      = 1
	dataSessionStart = 3
	dataSessionEnd   = 4

	startHParams   = 1
	startGroupName = 4
	startTime      = 5
	entryKey       = 1
	entryValue     = 2

	endStatus = 1
	endTime   = 2

	anyNumber = 2
	anyText   = 3
	anyBool   = 4
)

// SessionStatus says how a session stands (api.proto, Status).
type SessionStatus uint64

// The statuses.
const (
	SessionUnknown SessionStatus = 0
	SessionSuccess SessionStatus = 1
	SessionFailure SessionStatus = 2
	SessionRunning SessionStatus = 3
)

// Session is one run of a program with its hyperparameters.
type Session struct {
	Group   string         // sessions of one group are one row
	HParams map[string]any // float64, bool or string
	Began   float64        // seconds since 1970
	Ended   float64        // 0 = it has not
	Status  SessionStatus
}

// Session writes what the tab of hyperparameters shows of a run.
func (w *Writer) Session(s Session) error {
	var start []byte

	for _, name := range slices.Sorted(maps.Keys(s.HParams)) {
		entry := appendText(nil, entryKey, name)
		start = appendMessage(start, startHParams, appendMessage(entry, entryValue, anyValue(s.HParams[name])))
	}

	start = appendText(start, startGroupName, s.Group)
	start = appendDouble(start, startTime, s.Began)

	if err := w.hparams(s.Began, tagStart, dataSessionStart, start); err != nil {
		return err
	}

	end := appendNumber(nil, endStatus, uint64(s.Status))
	if s.Ended > 0 {
		end = appendDouble(end, endTime, s.Ended)
	}

	return w.hparams(max(s.Began, s.Ended), tagEnd, dataSessionEnd, end)
}

// hparams writes a message of the plugin: as metadata of a tensor of nothing.
func (w *Writer) hparams(wallTime float64, tag string, number protowire.Number, message []byte) error {
	data := appendNumber(nil, dataVersion, 0)
	data = appendMessage(data, number, message)

	none := appendNumber(nil, tensorType, typeFloat)
	none = appendMessage(none, tensorShape, appendMessage(nil, shapeDim, appendNumber(nil, dimSize, 0)))

	value := appendText(nil, valueTag, tag)
	value = appendMessage(value, valueMetadata, metadata(hparamsPlugin, data, 0))

	return w.value(wallTime, 0, appendMessage(value, valueTensor, none))
}

// anyValue is a google.protobuf.Value.
func anyValue(v any) []byte {
	switch v := v.(type) {
	case float64:
		return appendDouble(nil, anyNumber, v)
	case bool:
		return appendNumber(nil, anyBool, protowire.EncodeBool(v))
	case string:
		return appendText(nil, anyText, v)
	default:
		return nil
	}
}
