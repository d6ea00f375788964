package main

import (
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/cli"
)

// localDocker connects the commands that look into images to this machine's Docker.
func localDocker() (cli.LocalDocker, error) {
	return docker.New(docker.Config{Instance: "look"})
}
