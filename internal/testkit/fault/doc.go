// Package fault stands between Berth and its dependencies, and makes them fail
// as real ones do: without an answer, with an error, and, which is the hard
// part, by doing the work and losing the reply (rule R8). A seed decides which
// call fails how, so that a failure can be repeated.
//
//	before     nothing was done, and the caller gets unavailable
//	after      it was done, and the caller gets unavailable
//	half       for example, a container was created and not started
//	slow       it is done, with a pause before and after, in which others act
//	hang       no answer comes until the context ends, or the port's own limit
//
// A process that is killed is a Life that ends: its calls never return.
package fault
