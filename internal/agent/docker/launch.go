package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strconv"

	"github.com/berthml/berth"
)

// The labels of every container (rule R2).
const (
	labelInstance     = "berth.instance"
	labelInstallation = "berth.installation"
	labelHost         = "berth.host"
	labelBootID       = "berth.boot-id"
	labelSweep        = "berth.sweep"
	labelTrial        = "berth.trial"
	labelAttempt      = "berth.attempt"
	labelLease        = "berth.lease"
	labelToken        = "berth.token"
	labelSpecHash     = "berth.spec-hash"
	labelDevice       = "berth.device"       // of containers with a GPU: its UUID
	labelDeviceBytes  = "berth.device-bytes" // of containers with a GPU
)

// minMemoryBytes is the smallest limit Docker takes.
const minMemoryBytes = 6 << 20

// Name is the name of an attempt's container in this instance.
func (d *Docker) Name(attemptID string) string {
	return "berth-" + d.config.Instance + "-" + attemptID
}

// labels identify a container after everything else is lost.
func (d *Docker) labels(l berth.Launch) map[string]string {
	labels := map[string]string{
		labelInstance:     d.config.Instance,
		labelInstallation: d.config.Owner.Installation,
		labelHost:         d.config.Owner.HostID,
		labelBootID:       d.config.BootID,
		labelSweep:        l.SweepID,
		labelTrial:        l.TrialID,
		labelAttempt:      l.AttemptID,
		labelLease:        l.LeaseID,
		labelToken:        strconv.FormatInt(l.Token, 10),
		labelSpecHash:     cmp.Or(l.SpecHash, specHash(l)),
	}

	if l.DeviceID != "" {
		labels[labelDevice] = l.DeviceID
		labels[labelDeviceBytes] = strconv.FormatInt(l.DeviceBytes, 10)
	}

	return labels
}

// specHash is the SHA-256, in hex, of everything that a launch runs. It leaves
// out the identity, which the name and the token hold, and the shim and the
// defaults, which another version of Berth may not know.
func specHash(l berth.Launch) string {
	l.AttemptID, l.SweepID, l.TrialID, l.LeaseID, l.Token = "", "", "", "", 0
	l.Shim, l.Defaults, l.Datasets = nil, nil, nil

	data, err := json.Marshal(l) // map keys are sorted
	if err != nil {
		panic("docker: launch cannot be marshalled: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// CheckLaunch refuses a launch whose container would lack its fences. Errors:
// invalid.
func CheckLaunch(l berth.Launch) error {
	switch {
	case !namePattern.MatchString(l.AttemptID):
		return berth.Errorf(berth.KindInvalid, "attempt id %q must be letters, digits and _.-", l.AttemptID)
	case l.Image == "":
		return berth.Errorf(berth.KindInvalid, "attempt %q has no image", l.AttemptID)
	case len(l.Command) == 0:
		return berth.Errorf(berth.KindInvalid, "attempt %q has no command", l.AttemptID)
	case l.MemoryBytes < minMemoryBytes:
		return berth.Errorf(berth.KindInvalid, "attempt %q is limited to %d bytes of memory; the least is %d",
			l.AttemptID, l.MemoryBytes, minMemoryBytes)
	}

	for _, m := range l.Mounts {
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return berth.Errorf(berth.KindInvalid, "mount %q to %q: both must be absolute paths", m.Source, m.Target)
		}
	}

	return nil
}
