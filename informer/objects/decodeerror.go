package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// DecodeError reports that the server sent something that is not a valid object of the resource.
type DecodeError struct {
	// What was being read: "list", "watch event" or an object's key.
	What string
	Err  error
	// Key, UID and Version identify the object, as far as they could be read. If Key is empty the object is unknown.
	Key     string
	UID     types.UID
	Version string
}

func (e *DecodeError) Error() string { return fmt.Sprintf("decode %s: %v", e.What, e.Err) }

func (e *DecodeError) Unwrap() error { return e.Err }
