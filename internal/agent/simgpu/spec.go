package simgpu

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/berthml/berth"
)

const (
	// maxCards is how many cards one machine may have: four times as many as the
	// largest servers have, and each is two sockets and a directory.
	maxCards = 64

	// Bounds of one GPU's memory. The least holds a context (contextBytes) and the
	// headroom of a GPU.
	leastBytes = 2 << 30
	mostBytes  = 1 << 40
)

// Parse reads a list of GPUs such as 2x24GiB,1x80GiB, or 24GiB for one. It returns
// the memory of each GPU in bytes, a multiple of 1 MiB. Sizes are powers of 1024,
// written GiB or GB. Errors: invalid, with the text to write instead.
func Parse(text string) ([]int64, error) {
	var cards []int64

	for group := range strings.SplitSeq(text, ",") {
		count, size, counted := strings.Cut(strings.ToLower(strings.TrimSpace(group)), "x")
		if !counted {
			count, size = "1", count
		}

		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || n < 1 {
			return nil, malformed(text, fmt.Sprintf("%q has no number of cards before the x", group))
		}

		bytes, err := units.RAMInBytes(strings.TrimSpace(size))
		if err != nil {
			return nil, malformed(text, fmt.Sprintf("%q has no size of memory", group))
		}

		if bytes < leastBytes || bytes > mostBytes {
			return nil, malformed(text, fmt.Sprintf("%q: a card has from %s to %s", group, sizeText(leastBytes), sizeText(mostBytes)))
		}

		if n > maxCards-len(cards) {
			return nil, malformed(text, fmt.Sprintf("these are more than %d cards", maxCards))
		}

		for range n {
			cards = append(cards, bytes>>20<<20)
		}
	}

	return cards, nil
}

func malformed(text, why string) error {
	return berth.Errorf(berth.KindInvalid, "%q: %s; write how many cards of which memory, such as 2x24GiB,1x80GiB", text, why)
}

// sizeText is a size as a card's model has it: 24 GiB, or 2560 MiB where that is no
// whole number of GiB.
func sizeText(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return strconv.FormatInt(bytes>>30, 10) + " GiB"
	}

	return strconv.FormatInt(bytes>>20, 10) + " MiB"
}

// UUID is that of the machine's card with this number, counted from 0: the same each
// time. No card of NVIDIA's has it. A machine's name or id tells machines apart,
// because a ledger has each card once.
func UUID(machine string, number int) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(machine)) // a hash takes everything
	h := hash.Sum64()

	return fmt.Sprintf("GPU-51500000-%04x-%04x-%04x-%012d", h>>48&0xffff, h>>32&0xffff, h>>16&0xffff, number)
}
