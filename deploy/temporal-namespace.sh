#!/bin/sh
# Makes the namespace default once Temporal answers.
set -eu
until temporal operator cluster health; do sleep 1; done
temporal operator namespace describe --namespace default ||
	temporal operator namespace create --namespace default --retention 30d
