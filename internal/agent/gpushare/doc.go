// Package gpushare hands out a machine's GPUs: it finds them (gpus.go, source.go), lets trials
// share them by MPS or by time slices (sharing.go), and ends a client of MPS so that its
// neighbours live (stopclient.go, rule R10).
package gpushare
