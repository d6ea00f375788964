// Package api serves the REST API of Berth, which api/openapi.yaml describes:
// its types and its routes are generated from that file into api/openapi, and
// requests are validated against it before a handler sees them.
//
//	server.go     Deps, Config, Server: listen, serve, stop
//	routes.go     the order of the layers below
//	browser.go    Host allow-list, cross-origin protection, recovery, request ids
//	auth.go       authentication by tokens, and the roles; audit.go
//	sessions.go   browsers that log in with a token
//	validate.go   requests against the description
//	errors.go     the one table from berth.Kind to HTTP, and problem+json
//
//	submit.go     new sweeps; copy.go clones and reruns; preview.go validates and previews
//	sweeps.go control.go trials.go probes.go hosts.go tokens.go health.go
//	me.go         facts for a page about its caller and the server
//	web.go        the web interface
//	stream.go     server-sent events; feed.go their content; log.go follows a log
//	publisher.go  gives committed events their sequence
//	convert.go    domain to response types
//
// Handlers are the generated strict interface: a context of the request and a
// decoded request in, a response or an error out. What streams, reads a sweep
// file byte by byte or sets a cookie is registered by hand.
package api
