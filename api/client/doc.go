// Package client is the Go client of api/openapi.yaml, generated.
package client

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config config.yaml ../openapi.yaml
