package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// check cuts a release in a clone of HEAD, serves it by a module proxy of files, and builds modules that require it.
// The version names the commit and the time, so that nothing in the module cache can stand for it. Modules of others
// come from the module cache, and only what it lacks from a network.
func check(ctx context.Context, keep bool) (err error) {
	start := time.Now()
	dir, err := os.MkdirTemp("", "flyball-release-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("folder:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	head, err := run(ctx, ".", nil, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	top, err := run(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	version := fmt.Sprintf("v0.0.0-check.%d.g%s", start.Unix(), head)
	clone := repository{dir: filepath.Join(dir, "clone")}
	if _, err := run(ctx, dir, nil, "git", "clone", "--quiet", "--no-hardlinks", top, clone.dir); err != nil {
		return err
	}
	for _, setting := range []string{"user.name=Release check", "user.email=check@example.com"} {
		name, value, _ := strings.Cut(setting, "=")
		if _, err := clone.git(ctx, "config", name, value); err != nil {
			return err
		}
	}
	if err := cut(ctx, clone, version, start); err != nil {
		return err
	}
	proxy := filepath.Join(dir, "proxy")
	for i, folder := range modules {
		m := module.Version{Path: path.Join(root, folder), Version: version}
		if err := serve(proxy, clone.dir, folder, tags(version)[i], m, start); err != nil {
			return err
		}
	}
	cache, err := run(ctx, ".", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	others, err := run(ctx, ".", nil, "go", "env", "GOPROXY")
	if err != nil {
		return err
	}
	defer forget(cache, version)
	u := user{
		dir: filepath.Join(dir, "users"), clone: clone.dir, version: version,
		env: []string{
			"GOWORK=off", "GOFLAGS=-buildvcs=false", "GOSUMDB=off", "GOTOOLCHAIN=local",
			"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download") + "," + others,
			"GOBIN=" + filepath.Join(dir, "bin"), "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
		},
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"README's controller", u.controller},
		{"the two lines in a program on controller-runtime", u.swapIn},
		{"the exporter for OpenTelemetry", u.exporter},
		{"flyball install, init and make test", u.project},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("ok  %-50s %s\n", step.name, time.Since(began).Round(time.Second))
	}
	fmt.Printf("ok  %s in all\n", time.Since(start).Round(time.Second))
	return nil
}

// serve writes a module into a folder that go uses as a module proxy.
func serve(proxy, clone, folder, tag string, m module.Version, now time.Time) error {
	dir := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	if folder == "." {
		folder = ""
	}
	if err := zip.CreateFromVCS(archive, m, clone, tag, folder); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(clone, folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{m.Version, now})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list": []byte(m.Version + "\n"), m.Version + ".mod": mod, m.Version + ".info": info,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return archive.Close()
}

// forget removes a version of ours from the module cache, whose folders are read-only.
func forget(cache, version string) {
	for _, folder := range modules {
		name := path.Join(root, folder)
		extracted := filepath.Join(cache, name+"@"+version)
		_ = filepath.WalkDir(extracted, func(p string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(p, 0o755)
			}
			return err
		})
		_ = os.RemoveAll(extracted)
		_ = os.RemoveAll(filepath.Join(cache, "cache", "download", name, "@v"))
	}
}
