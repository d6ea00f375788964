package search

import "math/bits"

// sobolBits are the bits of a coordinate: a search of 2^32 trials has none of its points twice.
const sobolBits = 32

// sobolSeeds are the primitive polynomials of the first 32 dimensions, with their
// coefficients as bits, and the first direction numbers. Source: new-joe-kuo-6.21201 of
// Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections",
// SIAM J. Sci. Comput. 30 (2008).
var sobolSeeds = []struct {
	polynomial uint32
	first      []uint32
}{
	{1, []uint32{1}},
	{3, []uint32{1}},
	{7, []uint32{1, 3}},
	{11, []uint32{1, 3, 1}},
	{13, []uint32{1, 1, 1}},
	{19, []uint32{1, 1, 3, 3}},
	{25, []uint32{1, 3, 5, 13}},
	{37, []uint32{1, 1, 5, 5, 17}},
	{41, []uint32{1, 1, 5, 5, 5}},
	{47, []uint32{1, 1, 7, 11, 19}},
	{55, []uint32{1, 1, 5, 1, 1}},
	{59, []uint32{1, 1, 1, 3, 11}},
	{61, []uint32{1, 3, 5, 5, 31}},
	{67, []uint32{1, 3, 3, 9, 7, 49}},
	{91, []uint32{1, 1, 1, 15, 21, 21}},
	{97, []uint32{1, 3, 1, 13, 27, 49}},
	{103, []uint32{1, 1, 1, 15, 7, 5}},
	{109, []uint32{1, 3, 1, 15, 13, 25}},
	{115, []uint32{1, 1, 5, 5, 19, 61}},
	{131, []uint32{1, 3, 7, 11, 23, 15, 103}},
	{137, []uint32{1, 3, 7, 13, 13, 15, 69}},
	{143, []uint32{1, 1, 3, 13, 7, 35, 63}},
	{145, []uint32{1, 3, 5, 9, 1, 25, 53}},
	{157, []uint32{1, 3, 1, 13, 9, 35, 107}},
	{167, []uint32{1, 3, 1, 5, 27, 61, 31}},
	{171, []uint32{1, 1, 5, 11, 19, 41, 61}},
	{185, []uint32{1, 3, 5, 3, 3, 13, 69}},
	{191, []uint32{1, 1, 7, 13, 1, 19, 1}},
	{193, []uint32{1, 3, 7, 5, 13, 19, 59}},
	{203, []uint32{1, 1, 3, 9, 25, 29, 41}},
	{211, []uint32{1, 3, 5, 13, 23, 1, 55}},
	{213, []uint32{1, 3, 7, 3, 13, 59, 17}},
}

// sobolDirections are the direction numbers of each dimension, the highest bit first.
var sobolDirections = func() [][sobolBits]uint32 {
	all := make([][sobolBits]uint32, len(sobolSeeds))

	for dim, seed := range sobolSeeds {
		v, degree := &all[dim], bits.Len32(seed.polynomial)-1

		for i := range v {
			switch {
			case dim == 0:
				v[i] = 1 << (sobolBits - 1 - i) // the sequence of van der Corput
			case i < degree:
				v[i] = seed.first[i] << (sobolBits - 1 - i)
			default:
				v[i] = v[i-degree] ^ v[i-degree]>>degree

				for k := 1; k < degree; k++ {
					if seed.polynomial>>(degree-k)&1 == 1 {
						v[i] ^= v[i-k]
					}
				}
			}
		}
	}

	return all
}()

// sobol is a coordinate in [0, 1) of the point with a number, from zero, in Gray code's
// order. shift moves all points of a dimension alike (a digital shift), so that seeds
// differ. Dimensions beyond the table have no points: ok is false.
func sobol(number, dim int, shift uint32) (at float64, ok bool) {
	if dim >= len(sobolDirections) {
		return 0, false
	}

	code := uint32(number) ^ uint32(number)>>1 //nolint:gosec // G115: at most 100,000
	sum := shift

	for i := 0; code != 0; i, code = i+1, code>>1 {
		if code&1 == 1 {
			sum ^= sobolDirections[dim][i]
		}
	}

	return float64(sum) / (1 << sobolBits), true
}
