//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// Inventory lists the cards.
func (d *driver) Inventory(ctx context.Context) (gpu.Inventory, error) {
	return ask(ctx, d.calls, d.config.startPatience(), "listing GPUs", d.list)
}

func (d *driver) list() (gpu.Inventory, error) {
	count, err := d.lib.cards()
	if err != nil {
		return gpu.Inventory{}, err
	}

	var inventory gpu.Inventory
	inventory.DriverVersion, inventory.CUDAVersion = d.versions(&inventory.Warnings)

	var first error

	for i := range count {
		cards, err := d.describe(i, &inventory.Warnings)
		if err != nil {
			inventory.Warnings = append(inventory.Warnings, err.Error())

			if first == nil {
				first = err
			}
		}

		inventory.Cards = append(inventory.Cards, cards...)
	}

	switch {
	case len(inventory.Cards) > 0:
	case first != nil:
		return gpu.Inventory{}, first
	default:
		return gpu.Inventory{}, berth.Errorf(berth.KindNotFound, "listing GPUs: the NVIDIA driver sees no GPU: check `lspci | grep -i nvidia` and `dmesg`; in a container, give it the GPUs")
	}

	return inventory, nil
}

// versions are the versions of the driver and of CUDA; empty with a warning
// when one cannot be read.
func (d *driver) versions(warnings *[]string) (driver, cuda string) {
	driver, err := call(d.lib, "reading the driver's version", d.lib.api.SystemGetDriverVersion, "nvmlSystemGetDriverVersion")
	if err != nil {
		driver = ""
		*warnings = append(*warnings, err.Error())
	}

	number, err := call(d.lib, "reading CUDA's version", d.lib.api.SystemGetCudaDriverVersion_v2, "nvmlSystemGetCudaDriverVersion_v2")
	if err != nil {
		*warnings = append(*warnings, err.Error())

		return driver, ""
	}

	return driver, fmt.Sprintf("%d.%d", number/1000, number%1000/10)
}

// describe returns a card and its MIG devices. A card with a UUID that has
// trouble is returned with its Problem; a MIG device without one is a warning.
func (d *driver) describe(index int, warnings *[]string) ([]gpu.Card, error) {
	of := fmt.Sprintf("GPU %d", index)

	handle, err := d.lib.card(index)
	if err != nil {
		return nil, err
	}

	card := gpu.Card{Index: strconv.Itoa(index)}
	if card.UUID, err = d.lib.uuid(handle, of); err != nil {
		return nil, err
	}

	if problem := d.measureUp(handle, of, &card); problem != nil {
		card.Problem = problem.Error()

		return []gpu.Card{card}, nil //nolint:nilerr // it is listed with its problem
	}

	if !card.MIG {
		return []gpu.Card{card}, nil
	}

	devices, problem := d.devices(handle, card, warnings)
	if problem != nil {
		card.Problem = problem.Error()
	} else if len(devices) == 0 {
		card.Problem = "MIG mode is on and there is no MIG device to use: make some (`nvidia-smi mig -cgi … -C`), or switch MIG mode off (`nvidia-smi -mig 0`)"
	}

	return append([]gpu.Card{card}, devices...), nil
}

// measureUp reads a GPU's properties: model, memory, compute capability, MIG
// mode.
func (d *driver) measureUp(handle nvml.Device, of string, card *gpu.Card) error {
	model, err := d.lib.name(handle, of)
	if err != nil {
		return err
	}

	card.Model = model

	memory, err := d.lib.memory(handle, of)
	if err != nil {
		return err
	}

	card.MemoryBytes = memory.TotalBytes

	card.Major, err = call(d.lib, "reading the compute capability of "+of, func() (int, nvml.Return) {
		major, _, code := handle.GetCudaComputeCapability()

		return major, code
	}, "nvmlDeviceGetCudaComputeCapability")
	if err != nil && !errors.Is(err, gpu.ErrUnsupported) {
		return err
	}

	card.MIG, err = d.lib.mig(handle, of)

	return err
}

// mig reports whether MIG mode is on. Cards and drivers from before MIG have it off.
func (l *library) mig(d nvml.Device, of string) (bool, error) {
	mode, err := call(l, "reading the MIG mode of "+of, func() (int, nvml.Return) {
		current, _, code := d.GetMigMode()

		return current, code
	}, "nvmlDeviceGetMigMode")
	if errors.Is(err, gpu.ErrUnsupported) {
		return false, nil
	}

	return err == nil && mode == nvml.DEVICE_MIG_ENABLE, err
}

// devices returns the MIG devices of a card.
func (d *driver) devices(parent nvml.Device, card gpu.Card, warnings *[]string) ([]gpu.Card, error) {
	found, err := d.lib.migDevices(parent, fmt.Sprintf("GPU %q", card.UUID))
	if err != nil {
		return nil, err
	}

	var devices []gpu.Card

	for _, mig := range found {
		handle, of := mig.handle, fmt.Sprintf("MIG device %d of GPU %q", mig.index, card.UUID)
		device := gpu.Card{Index: fmt.Sprintf("%s:%d", card.Index, mig.index), Model: card.Model, Parent: card.UUID, Major: card.Major}

		if device.UUID, err = d.lib.uuid(handle, of); err != nil {
			*warnings = append(*warnings, err.Error())

			continue
		}

		memory, err := d.lib.memory(handle, of)
		device.MemoryBytes = memory.TotalBytes

		if err == nil {
			device.Profile, err = d.lib.profile(handle, of)
		}

		if err != nil {
			device.Problem = err.Error()
		}

		devices = append(devices, device)
	}

	return devices, nil
}

// migDevice is a MIG device as the driver numbers it on its card.
type migDevice struct {
	index  int
	handle nvml.Device
}

// migDevices returns a card's MIG devices. Their numbers have gaps where a device
// was taken away.
func (l *library) migDevices(parent nvml.Device, of string) ([]migDevice, error) {
	most, err := call(l, "counting the MIG devices of "+of, parent.GetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount")
	if err != nil {
		return nil, err
	}

	var devices []migDevice

	for i := range most {
		handle, err := call(l, fmt.Sprintf("finding MIG device %d of %s", i, of),
			func() (nvml.Device, nvml.Return) { return parent.GetMigDeviceHandleByIndex(i) }, "nvmlDeviceGetMigDeviceHandleByIndex")

		switch {
		case err == nil:
			devices = append(devices, migDevice{i, handle})
		case berth.KindOf(err) == berth.KindNotFound:
		default:
			return nil, err
		}
	}

	return devices, nil
}

// profile returns a MIG device's profile, which the driver puts behind the model's name, as in
// "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; empty where it does not.
func (l *library) profile(d nvml.Device, of string) (string, error) {
	name, err := l.name(d, of)
	_, profile, _ := strings.Cut(name, " MIG ")

	return profile, err
}
