package cel_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
)

// A definition whose rules connect two fields, and keep a third as it is.
const roomsYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rooms.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: rooms, kind: Room}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: self.guests <= self.beds, message: more guests than beds}
            properties:
              guests: {type: integer, default: 0}
              beds: {type: integer, default: 1}
              floor:
                type: integer
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: a room stays where it is}
`

var rooms = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "rooms"}

// read reads a definition or another object.
func read(text string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, yaml.Unmarshal([]byte(text), &u.Object)
}

// A test of a type with rules: the server refuses what a cluster would refuse.
func ExampleNew() {
	var t localapi.TB = &testing.T{} // that of the test
	definition, err := read(roomsYAML)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := localapi.NewTestWith(t, localapi.Options{CEL: cel.New()}, definition)
	defer server.Close()
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	room := func(guests, floor int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Room", "metadata": map[string]any{"name": "blue"},
			"spec": map[string]any{"guests": guests, "floor": floor},
		}}
	}
	_, err = client.Resource(rooms).Create(ctx, room(3, 1), metav1.CreateOptions{})
	fmt.Println(err)
	created, err := client.Resource(rooms).Create(ctx, room(1, 1), metav1.CreateOptions{})
	fmt.Println(err)
	moved := room(1, 2)
	moved.SetResourceVersion(created.GetResourceVersion())
	_, err = client.Resource(rooms).Update(ctx, moved, metav1.UpdateOptions{})
	fmt.Println(err)
	// Output:
	// Room.example.com "blue" is invalid: spec: Invalid value: more guests than beds
	// <nil>
	// Room.example.com "blue" is invalid: spec.floor: Invalid value: 2: a room stays where it is
}
