// Package e2e tests Berth as its users use it: the real binary with a real
// PostgreSQL, Temporal and Docker, through the REST API. The tests have the
// build tag integration; tests of docker-compose.yml have compose, too (make
// test/compose).
package e2e
