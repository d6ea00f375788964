// Package stopping decides which trials are stopped while they run. It is pure: what an
// attempt reports goes into a Follower, which says when the trial is judged; Decide judges
// it against what other trials reported at the same rung.
package stopping
