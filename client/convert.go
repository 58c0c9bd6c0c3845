package client

import (
	"encoding/json"
	"fmt"
)

// convert returns obj in the representation of c.
func (c *cache) convert(obj Object) (Object, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", c.kind.gvk.Kind, err)
	}
	converted, err := c.kind.make(c.scheme)
	if err != nil {
		return nil, err
	}
	if err := decode(data, converted); err != nil {
		return nil, err
	}
	converted.GetObjectKind().SetGroupVersionKind(c.kind.gvk)
	return converted, nil
}
