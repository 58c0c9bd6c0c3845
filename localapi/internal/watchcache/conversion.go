package watchcache

import "context"

// Conversion is a state of an object in another version, which a webhook makes of it. All readers of the state share
// it, and it lives as long as the state: a collection has one version to convert to.
type Conversion struct {
	Of *Object

	// made is closed by Finish, after result was set. Readers wait for it. Nothing is sent.
	made   chan struct{}
	result *Object // nil: the conversion failed
}

// NewConversion returns a conversion that only the caller knows of, who must make it and call Finish.
func NewConversion(of *Object) *Conversion {
	return &Conversion{Of: of, made: make(chan struct{})}
}

// Conversion returns the conversion of the state. mine means that the caller is the first to ask, must make it, and
// must call Finish.
func (o *Object) Conversion() (c *Conversion, mine bool) {
	for {
		if c := o.conversion.Load(); c != nil {
			return c, false
		}
		if c := NewConversion(o); o.conversion.CompareAndSwap(nil, c) {
			return c, true
		}
	}
}

// Finish ends the conversion. If result is nil it has failed, and the next reader of the state makes another.
func (c *Conversion) Finish(result *Object) {
	c.result = result
	if result == nil {
		c.Of.conversion.CompareAndSwap(c, nil)
	} else {
		c.Of.conversion.CompareAndSwap(nil, c)
	}
	close(c.made)
}

// Wait returns the result, nil if the conversion failed. Errors: that of ctx.
func (c *Conversion) Wait(ctx context.Context) (*Object, error) {
	select {
	case <-c.made:
		return c.result, nil
	default:
	}
	select {
	case <-c.made:
		return c.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget drops the cached encodings of the result. The result stays: to make it again takes a remote call.
func (c *Conversion) forget() {
	select {
	case <-c.made:
		if c.result != nil {
			c.result.forget()
		}
	default:
	}
}
