// Package testseed fixes the seeds of tests that draw: what passed once passes again.
// RAPID_SEED is another seed, and with 0 each test draws a new one.
//
// A package whose tests use rapid imports this one, if only for that.
package testseed

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // has the flag, and takes its default from the variable
)

const (
	variable = "RAPID_SEED"
	seedFlag = "rapid.seed"
)

// init runs after rapid's, and before the command line is read.
func init() { //nolint:gochecknoinits // only an init stands between both
	if _, given := os.LookupEnv(variable); given {
		return
	}

	if err := flag.Set(seedFlag, "1"); err != nil {
		panic(err)
	}
}

// Seed returns the seed of a test that draws without rapid, and logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()

	seed, err := strconv.ParseUint(flag.Lookup(seedFlag).Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	if seed == 0 {
		seed = rand.Uint64()
	}

	t.Logf("the seed is %d, which %s repeats", seed, variable)

	return seed
}
