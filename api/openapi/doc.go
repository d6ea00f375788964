// Package openapi is the server side of api/openapi.yaml: its types and its strict gin server, all generated.
package openapi

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config config.yaml ../openapi.yaml
