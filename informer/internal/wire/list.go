package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/objects"
)

// listBuffer is how many bytes of a list are read at once.
const listBuffer = 64 << 10

// listReaders has the unused *bufio.Reader of earlier lists.
var listReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, listBuffer) }}

// List decodes one page of a list while it arrives. It calls each for every object, with an error for an object that
// cannot be decoded.
func (d *Decoder[T]) List(body io.Reader, o Options, each func(T, error) error) (metav1.ListMeta, error) {
	in := listReaders.Get().(*bufio.Reader)
	in.Reset(body)
	defer func() {
		in.Reset(nil)
		listReaders.Put(in)
	}()
	if start, _ := in.Peek(len(protobufMagic)); !bytes.Equal(start, protobufMagic) {
		return d.listJSON(in, o, each) // If Peek failed, listJSON gets the same error.
	}
	return d.listProtobuf(in, o, each)
}

// errNoList reports that an answer does not look like a list.
var errNoList = &objects.DecodeError{What: "list", Err: errors.New("it has neither items nor the kind of a list")}

// expectList returns an error if a list of that kind does not have objects of the expected kind.
func (d *Decoder[T]) expectList(kind string) error {
	item, isList := strings.CutSuffix(kind, "List")
	if !isList && kind != "" {
		return &objects.DecodeError{What: "list", Err: fmt.Errorf("the server sent a %s", kind)}
	}
	if item == "" {
		return nil // "List" or "" does not name the kind of the items.
	}
	return d.expect(item)
}
