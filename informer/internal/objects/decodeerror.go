package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// DecodeError says that the server answered with something that is not an object of the resource.
type DecodeError struct {
	// What was being read: "list", "watch event" or an object's key.
	What string
	Err  error
	// Key, UID and Version are those of the object that could not be decoded, as far as they could be. Without a Key
	// it is not known which object it is.
	Key     string
	UID     types.UID
	Version string
}

func (e *DecodeError) Error() string { return fmt.Sprintf("decode %s: %v", e.What, e.Err) }

func (e *DecodeError) Unwrap() error { return e.Err }
