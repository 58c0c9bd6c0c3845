package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker in an image: -ldflags "-X main.version=v1.2.3".
var version string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of flyball, its module and commit, and the versions of Kubernetes and of Go",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), versionText(buildInfo()))
			return err
		},
	}
}

// buildInfo returns what the go command has recorded in the program.
func buildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

func ownVersion() string { return cmp.Or(version, buildInfo().Main.Version, "unknown") }

// versionText describes a program. A program that was built without its repository, as by go install, does not know its
// commit; its version says which one that is.
func versionText(info *debug.BuildInfo) string {
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	for _, m := range info.Deps {
		of[m.Path] = m.Version
	}
	commit := cmp.Or(of["vcs.revision"], "unknown")
	if of["vcs.modified"] == "true" {
		commit += " with changes"
	}
	client := cmp.Or(of["k8s.io/client-go"], "unknown")
	kubernetes := strings.Replace(client, "v0.", "v1.", 1) // the numbers of the libraries follow those of Kubernetes
	return fmt.Sprintf("flyball %s\nmodule %s, commit %s\nKubernetes %s (client-go %s)\n%s %s/%s\n",
		cmp.Or(version, info.Main.Version, "unknown"), cmp.Or(info.Main.Path, "unknown"), commit, kubernetes, client,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
