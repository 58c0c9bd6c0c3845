package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	suite    = "bookworm"
	mirror   = "http://deb.debian.org/debian"
	packages = "containerd,runc,containernetworking-plugins,iptables,conntrack,iproute2" + forKind
	// forKind are the packages that only the nodes of kind need.
	forKind = ",systemd,jq,procps,kmod"
)

// rootImage is the image of the node's file system.
func rootImage() string { return debianImage("flyball-node", packages) }

// buildRoot builds the image of the node's file system unless the engine has it.
func buildRoot(ctx context.Context, log io.Writer) error {
	return buildDebian(ctx, log, rootImage(), packages)
}

// debianImage returns the name of an image of a minimal Debian with these packages. Its tag changes with what is in it.
func debianImage(name, packages string) string {
	sum := sha256.Sum256([]byte(suite + " " + mirror + " " + packages))
	return name + ":" + hex.EncodeToString(sum[:])[:12]
}

// buildDebian builds an image that [debianImage] names, unless the engine has it.
func buildDebian(ctx context.Context, log io.Writer, image, packages string) error {
	if have, err := docker(ctx, "image", "ls", "--quiet", image); err != nil || have != "" {
		return err
	}
	fmt.Fprintf(log, "building %s of Debian packages (only the first time; minutes)\n", image)
	dir, err := os.MkdirTemp("", "flyball-debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// debootstrap is a shell script, which need not be installed.
	script := fmt.Sprintf(`set -eu
apt-get download debootstrap
dpkg-deb -x debootstrap_*.deb tool
DEBOOTSTRAP_DIR=$PWD/tool/usr/share/debootstrap sh tool/usr/sbin/debootstrap \
  --variant=minbase --include=%s %s root %s
rm -rf root/var/cache/apt/* root/var/lib/apt/lists/*
tar -C root -c . | docker import - %s
`, packages, suite, mirror, image)
	c := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script)
	c.Dir = dir
	_, err = output(c)
	return err
}

// repository is the folder of the root module.
func repository() (string, error) {
	dir, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/flyball-dev/flyball"))
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return dir, nil
}

// compile builds a static program. Path is a package of this module.
func compile(ctx context.Context, path, target, flags string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w "+flags, "-o", target,
		"github.com/flyball-dev/flyball/peers/node/"+path)
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux")
	_, err := output(c)
	return err
}

// buildImage builds an image of one program of this module, as make image does of those of the root module.
func buildImage(ctx context.Context, path, image, flags string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "flyball-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := compile(ctx, path, filepath.Join(dir, "program"), flags); err != nil {
		return err
	}
	// The program calls nobody, so it needs no certificates.
	if err := os.WriteFile(filepath.Join(dir, "ca-certificates.crt"), nil, 0o644); err != nil {
		return err
	}
	_, err = docker(ctx, "build", "--quiet", "--file", filepath.Join(root, "Dockerfile"), "--tag", image, dir)
	return err
}

// Image builds the image of a program of the root module with make image, and returns its name.
func Image(ctx context.Context, name string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	out, err := output(exec.CommandContext(ctx, "make", "--silent", "--directory", root, "image", "ONLY="+name))
	return out[strings.LastIndexByte(out, '\n')+1:], err
}

// Web are images of package web. They differ in what they answer, which is the tag.
var Web = [2]string{"web:1", "web:2"}

// pause is the image that holds the namespaces of a pod.
const pause = "pause:1"

// buildImages builds the images of this module.
func buildImages(ctx context.Context) error {
	if err := buildImage(ctx, "cmd/pause", pause, ""); err != nil {
		return err
	}
	for _, image := range Web {
		if err := buildImage(ctx, "cmd/web", image, "-X main.version="+image); err != nil {
			return err
		}
	}
	return nil
}
