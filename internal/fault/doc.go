// Package fault stands between Berth and what it talks to, and makes that fail
// as the real thing does: by saying nothing, by failing, and, which is the
// hard part, by doing the work and losing the reply (rule R8). Which call fails
// how comes from a seed, so that a failure can be looked at again.
//
//	before     nothing was done, and the caller is told unavailable
//	after      it was done, and the caller is told unavailable
//	half       a container was created and not started, and so on
//	slow       it is done, with a pause before and after, in which others act
//	hang       nothing is said until the context ends, or the port's own limit
//
// A process that is killed is a Life that ends: its calls never return.
package fault
