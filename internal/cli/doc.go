// Package cli is the client commands of berth: noun and verb over the
// generated REST client (api/client). Data goes to standard output, all else
// to standard error, and the exit code says how it went.
//
//	commands.go   the tree; options.go its common flags
//	client.go     calls and their problems; exit.go the exit code of an error
//	output.go     table, json, yaml and csv; format.go numbers for people
//	submit.go sweep.go trials.go control.go trial.go probe.go machines.go token.go events.go    the commands
//	file.go       a sweep file, and the line a JSON pointer leads to
//	sse.go        server-sent events, across lost connections
//	watch.go      a sweep as it goes; progress.go and lines.go show it
//	init.go       berth init; source.go its script, local.go this machine's Docker
//	image.go      berth image check
//	try.go        berth try: a sweep of one trial
//	summary.go    the result of a sweep; summary_text.go shows it
package cli
