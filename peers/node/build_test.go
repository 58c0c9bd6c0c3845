package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestBuild builds what the other tests need: make test-node runs it first and without a timeout. It logs how long each
// part took, which is nothing if it was there, and its size on disk.
func TestBuild(t *testing.T) {
	able(t)
	ctx, log := t.Context(), t.Output()
	root, err := repository()
	must(t, err)
	var rows strings.Builder
	var whole int64
	start := time.Now()
	row := func(name string, size int64, since time.Time) {
		fmt.Fprintf(&rows, "%-28s %7.1f MB %7s\n", name, float64(size)/1e6, time.Since(since).Round(time.Second))
	}
	// part builds something. Its function returns the files and images that it has built.
	part := func(name string, build func() ([]string, error)) {
		fmt.Fprintln(log, name)
		begin := time.Now()
		made, err := build()
		must(t, err)
		size := sizes(t, made)
		row(name, size, begin)
		whole += size
	}
	part(rootImage(), func() ([]string, error) { return []string{rootImage()}, buildRoot(ctx, log) })
	for _, program := range kindBinaries {
		part(program, func() ([]string, error) {
			dir, err := upstream.Build(ctx, log, program)
			return []string{filepath.Join(dir, program)}, err
		})
	}
	images := append([]string{pause}, Web[:]...)
	part(strings.Join(images, ", "), func() ([]string, error) { return images, buildImages(ctx) })
	part("image of a node of kind", func() ([]string, error) {
		_, image, err := buildKind(ctx, log)
		return []string{image}, err
	})
	for _, name := range []string{"flyball", "items", "ipam-operator", "project-operator", "ci-controllers"} {
		part("image "+name, func() ([]string, error) {
			image, err := Image(ctx, name)
			return []string{image}, err
		})
	}
	part("bin/flyball", func() ([]string, error) {
		_, err := output(exec.CommandContext(ctx, "make", "--silent", "--directory", root, "build"))
		return []string{filepath.Join(root, "bin", "flyball")}, err
	})
	part("kustomize", func() ([]string, error) { // it stays in Go's cache
		_, err := kustomize(ctx, root, "version")
		return nil, err
	})
	row("all", whole, start)
	t.Logf("\n%s", &rows)
}

// sizes returns how many bytes files and images take together.
func sizes(t *testing.T, of []string) (all int64) {
	t.Helper()
	for _, name := range of {
		if filepath.IsAbs(name) {
			info, err := os.Stat(name)
			must(t, err)
			all += info.Size()
			continue
		}
		text, err := docker(t.Context(), "image", "inspect", "--format", "{{.Size}}", name)
		must(t, err)
		size, err := strconv.ParseInt(text, 10, 64)
		must(t, err)
		all += size
	}
	return all
}
