package indexer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type object = *metav1.PartialObjectMetadata

func show(o object) string { return fmt.Sprintf("%s@%s/%s", o.Name, o.ResourceVersion, o.UID) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
