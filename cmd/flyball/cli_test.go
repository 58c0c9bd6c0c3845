package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/flyball-dev/flyball/internal/kit"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

func TestVersion(t *testing.T) {
	code, out, errs := flyball(t.Context(), "version")
	if code != 0 || !strings.HasPrefix(out, "flyball ") || errs != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	info := &debug.BuildInfo{
		Main:     debug.Module{Path: "example.com/m", Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "k8s.io/client-go", Version: "v0.37.2"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	const want = "flyball v1.2.3\nmodule example.com/m, commit abc with changes\n" +
		"Kubernetes v1.37.2 (client-go v0.37.2)\n"
	if text := versionText(info); !strings.HasPrefix(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
}

// TestCompletion: the script of each shell asks the program what can follow.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, errs := flyball(t.Context(), "completion", shell); code != 0 || errs != "" ||
			!strings.Contains(out, "__complete") {
			t.Errorf("%s: exit code %d, %q, %q", shell, code, out, errs)
		}
	}
	if _, out, _ := flyball(t.Context(), "__complete", "serve", "--sto"); !strings.HasPrefix(out, "--store\t") {
		t.Errorf("what follows serve --sto: %q", out)
	}
}

// TestCLI compares docs/cli.md with the help of the commands. make cli writes it.
func TestCLI(t *testing.T) {
	const page = "../../docs/cli.md"
	var text strings.Builder
	text.WriteString("# The commands of flyball\n\nThe help of each command, as `flyball COMMAND --help` prints it. " +
		"`make cli` writes this page.\n")
	var show func(c *cobra.Command)
	show = func(c *cobra.Command) {
		if c.Name() == "help" {
			return
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		code, help, errs := flyball(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Fatalf("%q: exit code %d, %s", args, code, errs)
		}
		fmt.Fprintf(&text, "\n## %s\n\n```text\n%s```\n", c.CommandPath(), help)
		for _, sub := range c.Commands() {
			show(sub)
		}
	}
	all := newRoot()
	all.InitDefaultCompletionCmd()
	show(all)
	if *update {
		if err := os.WriteFile(page, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(old), text.String()); diff != "" {
		t.Errorf("make cli writes %s (-page +help):\n%s", page, diff)
	}
}

// TestProgramExecutesNoTemplate: a template can call any method by its name, so the linker keeps all methods of a
// program that can execute one. That makes this program a sixth larger. Cobra's SetUsageTemplate is enough.
func TestProgramExecutesNoTemplate(t *testing.T) {
	program, err := os.ReadFile(kit.Build(t, "./cmd/flyball"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text/template.(*Template).Execute", "cobra.(*Command).Execute"} {
		linked := bytes.Contains(program, []byte(name))
		if want := strings.HasPrefix(name, "cobra."); linked != want {
			t.Errorf("the program has %s: %v, want %v", name, linked, want)
		}
	}
}
