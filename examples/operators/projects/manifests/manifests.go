package manifests

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
)

// Files are the manifests.
//
//go:embed *.yaml
var Files embed.FS

// Definitions are the files that define resources.
var Definitions = []string{"crd-project.yaml", "crd-projectcontrolplane.yaml"}

// Objects reads the objects of files.
func Objects(files ...string) (all []*unstructured.Unstructured, err error) {
	for _, file := range files {
		text, err := Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &u.Object); err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
			all = append(all, u)
		}
	}
	return all, nil
}

// Install creates what files describe, where it is missing, and waits until definitions among it are served.
func Install(ctx context.Context, c client.Client, files ...string) error {
	objects, err := Objects(files...)
	if err != nil {
		return err
	}
	for _, u := range objects {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, u)); err != nil {
			return fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	for _, u := range objects {
		for u.GetKind() == "CustomResourceDefinition" && !established(u) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for %s: %w", u.GetName(), context.Cause(ctx))
			case <-time.After(50 * time.Millisecond):
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(u), u, client.Live); err != nil {
				return err
			}
		}
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}
