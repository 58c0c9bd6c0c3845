package codec

import (
	"cmp"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Output is the form in which a client wants its answer.
type Output struct {
	Format Format
	Pretty bool

	// As is the kind to convert the answer to (Table, PartialObjectMetadata, PartialObjectMetadataList,
	// APIGroupDiscoveryList), or empty.
	As schema.GroupVersionKind
}

// clause is one alternative of an Accept header.
type clause struct {
	mediaType string
	params    map[string]string
	quality   float64
}

// Negotiate picks the first acceptable one of the client's alternatives, best quality first. convertible reports
// whether the resource at hand can be converted to a kind; nil means that it cannot be converted. A stream cannot be
// YAML. Without protobuf, the kind has no such encoding unless it is converted; see [HasProtobuf].
//
// Errors: NotAcceptable.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/negotiation/negotiate.go acceptMediaTypeOptions, and
// handlers/get.go ListResource, which negotiates twice for a watch.
func Negotiate(r *http.Request, stream, protobuf bool, convertible func(schema.GroupVersionKind) bool) (Output, error) {
	for c := range alternatives(r.Header.Get("Accept")) {
		format, ok := formatOf(c.mediaType)
		if !ok || stream && format == YAML || !protobuf && format == Protobuf && c.params["as"] == "" {
			continue
		}
		out := Output{Format: format, Pretty: wantsPretty(r, c)}
		out.As = schema.GroupVersionKind{Group: c.params["g"], Version: c.params["v"], Kind: c.params["as"]}
		if !out.As.Empty() &&
			(convertible == nil || !convertible(out.As) || format == Protobuf && out.As.Kind == "Table") {
			continue
		}
		return out, nil
	}
	if stream { // The answer to a list comes first: it names the types for streams only if a list could be answered.
		_, err := Negotiate(r, false, protobuf, convertible)
		stream = err == nil
	}
	return Output{}, notAcceptable(stream)
}

// InputFormat returns the format of a request's body. Without a content type it is JSON. Errors: UnsupportedMediaType.
func InputFormat(r *http.Request) (Format, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return JSON, nil
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err == nil && mediaType != "*/*" {
		if format, ok := formatOf(mediaType); ok {
			return format, nil
		}
	}
	return JSON, UnsupportedMediaType(runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
}

// UnsupportedMediaType returns the error for a body in none of the accepted media types.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/negotiation/errors.go.
func UnsupportedMediaType(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s",
			strings.Join(accepted, ", ")),
	}}
}

// Representable reports whether a client accepts any of the server's media types, whatever conversion it asks for. If
// it does not, types lists the media types.
func Representable(r *http.Request, collection bool) (types string, ok bool) {
	for c := range alternatives(r.Header.Get("Accept")) {
		if _, ok := formatOf(c.mediaType); ok && c.mediaType != "application/*" {
			return "", true
		}
	}
	accepted := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	if collection {
		accepted = append(accepted, runtime.ContentTypeJSON+";stream=watch", runtime.ContentTypeProtobuf+
			";stream=watch")
	}
	return strings.Join(accepted, ", "), false
}

// ErrorFormat returns the format of errors: that of the first of the client's alternatives that has one and asks for no
// conversion.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/writers.go ErrorNegotiated.
func ErrorFormat(r *http.Request) Format {
	for c := range alternatives(r.Header.Get("Accept")) {
		if f, ok := formatOf(c.mediaType); ok && c.params["as"] == "" {
			return f
		}
	}
	return JSON
}

func notAcceptable(stream bool) error {
	accepted := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	if stream {
		accepted = []string{runtime.ContentTypeJSON + ";stream=watch", runtime.ContentTypeProtobuf + ";stream=watch"}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("only the following media types are accepted: %s", strings.Join(accepted, ", ")),
	}}
}

// NotConvertible returns the error for metadata requested in the wrong shape: that of an object for a list, or that of
// a list for an object.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/response.go.
func NotConvertible(as string, kind schema.GroupVersionKind, list bool) error {
	what, name := "is not a list", kind.Kind
	if list {
		what, name = "is a list", kind.Kind+"List"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusNotAcceptable,
		Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("you requested %s, but the requested object %s (*%s)", as, what,
			internalName(kind.GroupVersion().WithKind(name))),
	}}
}

func formatOf(mediaType string) (Format, bool) {
	switch mediaType {
	case runtime.ContentTypeJSON, "*/*", "application/*", "":
		return JSON, true
	case runtime.ContentTypeYAML:
		return YAML, true
	case runtime.ContentTypeProtobuf:
		return Protobuf, true
	}
	return JSON, false
}

// wantsPretty reports whether a person is likely to read the answer.
func wantsPretty(r *http.Request, c clause) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if p := r.URL.Query().Get("pretty"); p != "" {
			on, err := strconv.ParseBool(p)
			return on || err != nil
		}
	}
	if c.params["pretty"] == "1" {
		return true
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}

// alternatives yields the alternatives of an Accept header, the best first. It parses no more of them than are asked
// for, unless the header ranks them.
func alternatives(header string) iter.Seq[clause] {
	header = cmp.Or(header, runtime.ContentTypeJSON)
	inOrder := func(yield func(clause) bool) {
		for part := range strings.SplitSeq(header, ",") {
			if c, ok := parseClause(strings.TrimSpace(part)); ok && !yield(c) {
				return
			}
		}
	}
	if !strings.Contains(header, "q=") && !strings.Contains(header, "Q=") {
		return inOrder
	}
	best := func(a, b clause) int { return cmp.Compare(b.quality, a.quality) }
	return slices.Values(slices.SortedStableFunc(inOrder, best))
}

func parseClause(text string) (c clause, ok bool) {
	if _, plain := formatOf(text); plain && text != "" { // what most clients send needs no parser
		return clause{mediaType: text, quality: 1}, true
	}
	mediaType, params, err := mime.ParseMediaType(text)
	if err != nil {
		return c, false
	}
	c = clause{mediaType: mediaType, params: params, quality: 1}
	if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
		c.quality = q
	}
	return c, true
}
