package node

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// kindFiles are the files from which the image of a node of kind is made, and the sources of the programs of this
// module in it.
//
//go:embed kindnode cmd/coredns cmd/pause cmd/web
var kindFiles embed.FS

// kindBinaries are kind itself, and those of Kubernetes that its nodes run.
var kindBinaries = append([]string{"kind", "kubeadm", "kubectl"}, binaries...)

// buildKind builds kind itself, kubectl, and an image of a node for it, with what is needed to run Kubernetes without a
// registry. It returns the folder of the programs and the name of the image.
func buildKind(ctx context.Context, log io.Writer) (bin, image string, err error) {
	if err := buildRoot(ctx, log); err != nil {
		return "", "", err
	}
	bin, err = upstream.Build(ctx, log, kindBinaries...)
	if err != nil {
		return "", "", err
	}
	if image, err = kindImage(bin); err != nil {
		return "", "", err
	}
	if have, err := docker(ctx, "image", "ls", "--quiet", image); err != nil || have != "" {
		return bin, image, err
	}
	fmt.Fprintf(log, "building %s (only the first time; minutes)\n", image)
	start := time.Now()
	dir, err := os.MkdirTemp("", "flyball-kind-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	if err := layOut(ctx, dir, bin); err != nil {
		return "", "", err
	}
	if err := buildImages(ctx); err != nil {
		return "", "", err
	}
	args := []string{"build.sh", image, rootImage(), upstream.Version}
	c := exec.CommandContext(ctx, "bash", append(args, Web[:]...)...)
	c.Dir = dir
	if _, err := output(c); err != nil {
		return "", "", err
	}
	fmt.Fprintf(log, "built %s in %s\n", image, time.Since(start).Round(time.Second))
	return bin, image, nil
}

// kindImage returns the name of the image. Its tag changes with what is in it. Bin is a folder that [upstream.Build]
// names.
func kindImage(bin string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, rootImage(), filepath.Base(bin))
	err := fs.WalkDir(kindFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := kindFiles.ReadFile(path)
		fmt.Fprintf(sum, "%s %q\n", path, text)
		return err
	})
	return "flyball-kind-node:" + hex.EncodeToString(sum.Sum(nil))[:12], err
}

// layOut fills the folder in which build.sh works.
func layOut(ctx context.Context, dir, bin string) error {
	module, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind"))
	if err != nil {
		return err
	}
	// The module of kind has the files of its base image.
	err = os.CopyFS(filepath.Join(dir, "rootfs"), os.DirFS(filepath.Join(module, "images", "base", "files")))
	if err != nil {
		return err
	}
	ours, err := fs.Sub(kindFiles, "kindnode")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, ours); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	for _, program := range kindBinaries {
		if err := os.Symlink(filepath.Join(bin, program), filepath.Join(dir, "bin", program)); err != nil {
			return err
		}
	}
	for _, program := range []string{"coredns", "pause"} {
		if err := compile(ctx, "cmd/"+program, filepath.Join(dir, "bin", program), ""); err != nil {
			return err
		}
	}
	return nil
}
