package wire

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// listJSON decodes a page item by item, while it arrives. So the items of a page need not be in memory together, and
// the error for an item that cannot be decoded can name that item.
func (d *Decoder[T]) listJSON(body io.Reader, o Options, each func(T, error) error) (m metav1.ListMeta, err error) {
	in := newJSONStream(body, listBuffer)
	if _, err := in.expect("{"); err != nil {
		return m, readFailed(err)
	}
	isList := false // Without it, any JSON object that a proxy sends with status 200 would count as an empty list.
	for sep := byte('{'); ; {
		if sep, err = in.member(sep, func(name string) error {
			if name == "items" {
				isList = true
				return d.itemsJSON(in, o, each)
			}
			v, err := in.value()
			if err != nil {
				return readFailed(err)
			}
			switch name {
			case "kind":
				var kind string
				if err := fromJSON(v, &kind); err != nil {
					return err
				}
				isList = isList || kind != ""
				return d.expectList(kind)
			case "metadata":
				return fromJSON(v, &m)
			}
			return nil
		}); err != nil {
			return m, err
		}
		if sep == '}' && !isList {
			return m, errNoList
		}
		if sep == '}' {
			return m, nil
		}
	}
}

// member reads one member of a JSON object. f reads its value. before is the character before the member; member
// returns the character after it.
func (s *jsonStream) member(before byte, f func(name string) error) (after byte, err error) {
	if c, err := s.peek(); err != nil {
		return 0, readFailed(err)
	} else if c == '}' && before == '{' {
		s.begin++
		return c, nil
	}
	key, err := s.value()
	if err != nil {
		return 0, readFailed(err)
	}
	var name string
	if err := fromJSON(key, &name); err != nil {
		return 0, err
	}
	if _, err := s.expect(":"); err != nil {
		return 0, readFailed(err)
	}
	if err := f(name); err != nil {
		return 0, err
	}
	after, err = s.expect(",}")
	return after, readFailed(err)
}

// fromJSON decodes a small value.
func fromJSON(v lean.Value, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.Bytes(), into); err != nil {
		return &objects.DecodeError{What: "list", Err: err}
	}
	return nil
}

// itemsJSON decodes the items of a page. Some servers send null for an empty list.
func (d *Decoder[T]) itemsJSON(in *jsonStream, o Options, each func(T, error) error) error {
	if c, err := in.expect("[n"); err != nil {
		return readFailed(err)
	} else if c == 'n' {
		in.begin--
		v, err := in.value()
		if err != nil {
			return readFailed(err)
		}
		var none []struct{}
		return fromJSON(v, &none)
	}
	if c, err := in.peek(); err != nil || c == ']' {
		in.begin++
		return readFailed(err)
	}
	for {
		item, err := in.value()
		if err != nil {
			return readFailed(err)
		}
		if o.Held == nil || !o.Held(stateJSON(item)) {
			obj, err := d.objectJSON(item, o)
			if err == nil {
				err = d.Check(obj)
			}
			if err := each(obj, err); err != nil {
				return err
			}
		}
		if sep, err := in.expect(",]"); err != nil || sep == ']' {
			return readFailed(err)
		}
	}
}

// readFailed returns a [*objects.DecodeError] unchanged and wraps any other error. The end of the body becomes
// io.ErrUnexpectedEOF, because the list is incomplete.
func readFailed(err error) error {
	var malformed *objects.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &malformed):
		return err
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the list: %w", err)
}
