// Package datadir knows a worker's data directory: which process has it (Lock), whose attempts
// are below it (Claim), the host's id that it keeps (Identify), and what is free on its disk.
package datadir
