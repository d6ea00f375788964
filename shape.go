package berth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Shape is everything that decides an attempt's need of memory. Trials of one
// shape share one probe, across sweeps.
type Shape struct {
	ImageDigest string            `json:"image_digest"`
	Command     []string          `json:"command"`              // template, with its placeholders
	Entrypoint  bool              `json:"entrypoint,omitempty"` // the image's stands before Command
	Workdir     string            `json:"workdir,omitempty"`
	Values      Assignment        `json:"values"` // of the parameters that decide memory, fixed and derived ones included
	Stage       string            `json:"stage"`
	DeviceModel string            `json:"device_model"` // empty = CPU
	Environment map[string]string `json:"environment,omitempty"`
	CPUMilli    int64             `json:"cpu_milli"` // thread caps change memory
	Datasets    []string          `json:"datasets,omitempty"`
}

// Key is the SHA-256 of the shape's canonical JSON, in hex.
func (s Shape) Key() string {
	data, err := json.Marshal(s) // map keys are sorted; Values refuse NaN on the way in
	if err != nil {
		panic("berth: shape cannot be marshalled: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// ShortKey is the first 12 hex digits of a key, for people.
func ShortKey(key string) string {
	return key[:min(len(key), 12)]
}
