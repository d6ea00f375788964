// Package imports turns a sweep of W&B, Katib, NNI or Optuna into a sweep file, and
// lists each key that has no place there.
//
//	imports.go    file → tool → Result
//	source.go     keys and values of the source; the keys that nothing reads
//	draft.go      the sweep file in the making, and its text
//	parameter.go  ranges and choices
//	wandb.go, katib.go, nni.go, optuna.go   one tool each
//
// It is pure: internal/cli reads the files.
package imports
