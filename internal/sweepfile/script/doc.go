// Package script turns a user's own training script into a sweep file: the
// script's flags, a guess of what a search should do with each, the metric that
// it prints, and the Dockerfile for it.
//
//	driver/flags.py  runs a script in a container until it reads its flags
//	driver/image.py  lists an image's content, for `berth image check`
//	report.go        their output → Report, ImageReport
//	guess.go         one flag → parameter, elements of the command, and why
//	text.go          flags and metrics in the text of a script
//	write.go         all guesses → the commented sweep file, and its Dockerfile
//
// It is pure: internal/cli reads files and asks Docker.
package script
